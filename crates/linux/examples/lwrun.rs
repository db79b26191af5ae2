//! x
use careof_base::*;
fn main() {
    let mut a = std::env::args().skip(1);
    let f = a.next().unwrap();
    let o: Vec<String> = a.collect();
    let s = careof_scenario::Scenario::load(std::path::Path::new(&f), &o).unwrap_or_else(|e| {
        eprintln!("{e}");
        std::process::exit(2)
    });
    let pcap = std::fs::File::create("/tmp/linux-world-x.pcapng").unwrap();
    let mut w = match careof_linux::LinuxRun::new(
        s,
        &f,
        0,
        careof_linux::Observation {
            trace: true,
            pcap: Some(Box::new(std::io::BufWriter::new(pcap))),
            snap_length: None,
        },
    ) {
        Ok(w) => w,
        Err(e) => {
            eprintln!("error: {e}\n hint: {:?}", e.remedy());
            std::process::exit(1)
        }
    };
    for r in w.take_remarks() {
        eprintln!("note: {r}");
    }
    let mut t = Instant::ZERO;
    let mut rows = 0;
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    let mut done = false;
    loop {
        if !done {
            t = t + Duration::from_secs(1);
            match w.advance(t) {
                Ok(n) => {
                    if n >= Instant::ZERO + w.duration() {
                        done = true;
                    }
                }
                Err(e) => {
                    eprintln!("FAILED {e}");
                    done = true
                }
            }
        }
        let last = done;
        let sum = if last { Some(w.finish()) } else { None };
        let c = w.take_events();
        rows += c.rows();
        let k = c.by_name("kind").unwrap();
        let cause = c.by_name("cause");
        let det = c.by_name("detail");
        for r in 0..c.rows() {
            let kk = k.text(r).unwrap().to_owned();
            if std::env::var("V").is_ok()
                && matches!(
                    kk.as_str(),
                    "handover"
                        | "binding"
                        | "arp"
                        | "message-sent"
                        | "message-received"
                        | "flow-start"
                        | "flow-end"
                        | "timeout"
                )
            {
                println!(
                    "{:>12} {kk} {:?} {:?} {:?} {:?} {:?}",
                    c.by_name("time_ns").or(c.by_name("time")).and_then(|x| x.number(r)).unwrap_or(0),
                    c.by_name("node").and_then(|x| x.text(r)),
                    c.by_name("link").and_then(|x| x.text(r)),
                    c.by_name("message").and_then(|x| x.text(r)),
                    cause.and_then(|x| x.text(r)),
                    det.and_then(|x| x.text(r))
                );
            }
            *kinds.entry(kk).or_default() += 1;
        }
        if let Some(s) = sum {
            match s {
                Ok(s) => println!("{}", careof_metrics::summary_json(&s)),
                Err(e) => println!("finish: {e}"),
            }
            println!("rows {rows} {kinds:?}");
            for o in w.take_outputs() {
                println!(
                    "{} {} {:?}: {} ok={}\n{}{}",
                    o.flow,
                    o.which,
                    o.words,
                    o.ended,
                    o.is_success,
                    String::from_utf8_lossy(&o.stdout),
                    String::from_utf8_lossy(&o.stderr)
                );
            }
            break;
        }
    }
}
