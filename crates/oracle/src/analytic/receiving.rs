//! What a receiver answers, and what a sender makes of a window.

use std::time::Duration;

use careof_tcp::{Config, DelayedAck, InitialWindow};
use careof_wire::{Flags, Timestamps};

use super::bench::{Bench, MSS, Out, plain};
use super::{Check, Outcome, Row, expect, near, numbers, says};

const RTT: Duration = Duration::from_millis(10);

pub(super) fn check(row: &Row) -> Option<Check> {
    Some(match row.id.as_str() {
        "delack" => delayed(row),
        "zwp" => probes(row),
        "nagle" => small_segments(row),
        "sws-rcv" => silly_window(row),
        "wscale" => scaling(row),
        "paws" => old_timestamps(row),
        "mss-ts" => segment_size(row),
        id if id.starts_with("sack-2018-case") => blocks(row),
        id if id.starts_with("dsack-ex") => duplicates(row),
        _ => return None,
    })
}

fn delayed(row: &Row) -> Check {
    says(
        row,
        &["at least for every 2nd full-size segment; delay <= 500 ms; immediate dup ACK for out-of-order"],
    )?;
    let mut bench = Bench::connected(Config { delayed_ack: DelayedAck::RFC1122, ..plain() }, RTT)?;
    expect("ACKs of the first segment", bench.data(0, MSS).len(), 0)?;
    expect("ACKs of the second", bench.data(MSS, MSS).len(), 1)?;
    // A lone one waits for the timer.
    let begun = bench.ms();
    expect("ACKs of a lone one", bench.data(2 * MSS, MSS).len(), 0)?;
    bench.expire()?;
    if bench.ms() - begun > 500.0 {
        return Err(Outcome::Differs(format!("a delay of {} ms", bench.ms() - begun)));
    }
    let out = bench.data(4 * MSS, MSS);
    expect("ACK of what is out of order", out.iter().map(|out| out.ack).collect::<Vec<_>>(), vec![3 * MSS])?;
    let out = bench.data(3 * MSS, MSS);
    expect("ACK of what fills the gap", out.iter().map(|out| out.ack).collect::<Vec<_>>(), vec![5 * MSS])
}

fn probes(row: &Row) -> Check {
    let times =
        row.expected.split("doubling:").nth(1).unwrap_or_default().split(" s ").next().unwrap_or_default();
    let wanted = numbers(&times.replace(',', " ").replace("...", ""));
    says(row, &["the connection stays up while the peer answers"])?;
    let config = Config {
        rto_min: Some(Duration::from_millis(255)),
        rto_max: Some(Duration::from_secs(60)),
        ..plain()
    };
    let mut bench = Bench::connected(config, Duration::from_millis(1))?;
    bench.write(1);
    bench.set_window(0);
    let begun = bench.ms();
    bench.ack(1, &[]);
    bench.write(1);
    for &wanted in &wanted {
        let (_, sent) = bench.expire()?;
        expect("probe", sent.iter().filter(|out| out.probe).count(), 1)?;
        near("probe at", (bench.ms() - begun) / 1e3, wanted, 1e-9)?;
        bench.ack(1, &[]);
    }
    expect("gone", bench.connection.is_closed(), false)
}

fn small_segments(row: &Row) -> Check {
    says(row, &["held until everything is acknowledged or a full segment can go"])?;
    let config = Config { nagle: true, initial_window: InitialWindow::Segments(10), ..plain() };
    let mut bench = Bench::connected(config, RTT)?;
    let lens = |sent: Vec<Out>| sent.iter().map(|out| out.len).collect::<Vec<_>>();
    expect("a full segment", lens(bench.write(1)), vec![MSS])?;
    bench.connection.write(100);
    expect("a small one behind it", lens(bench.take()), vec![])?;
    bench.connection.write(u64::from(MSS));
    expect("once it is full", lens(bench.take()), vec![MSS])?;
    expect("the rest, acknowledged", lens(bench.ack(2, &[])), vec![100])
}

fn silly_window(row: &Row) -> Check {
    says(row, &["not advanced by less than min(RCV.BUFF/2, MSS)"])?;
    let config = Config { receive_window: 4 * MSS, window_scaling: false, ..plain() };
    let mut bench = Bench::connected(config, RTT)?;
    bench.connection.set_auto_read(false);
    let edge = |bench: &mut Bench, seq: u32| {
        bench.connection.handle_segment(bench.now, &bench.blank_data(seq, MSS));
        let out = bench.connection.poll_transmit(bench.now);
        out.map(|out| out.segment).map(|segment| bench.edge(&segment))
    };
    let first = edge(&mut bench, 0);
    // Less than a segment is read: the right edge rests; with the rest of it, it moves.
    bench.connection.read(u64::from(MSS) - 1);
    let second = edge(&mut bench, MSS);
    expect("the edge after 999 bytes", second, first)?;
    bench.connection.read(1);
    let third = edge(&mut bench, 2 * MSS);
    expect("the edge after 1000 bytes", third, first.map(|edge| edge + MSS))
}

fn scaling(row: &Row) -> Check {
    says(row, &["257<<7 = 32896 bytes", "shift at most 14"])?;
    let mut bench = Bench::syn_sent(plain())?;
    bench.answer_with(257, 7);
    expect("the window of the SYN-ACK", bench.connection.snapshot().snd_wnd, 257)?;
    bench.deliver_changed(|segment| segment.window = 257);
    expect("a scaled window", bench.connection.snapshot().snd_wnd, 32_896)?;
    let mut bench = Bench::syn_sent(plain())?;
    bench.answer_with(1, 200);
    bench.deliver_changed(|segment| segment.window = 1);
    expect("a shift above 14", bench.connection.snapshot().snd_wnd, 1 << 14)
}

fn old_timestamps(row: &Row) -> Check {
    says(row, &["drop, send ACK; not for RST"])?;
    let config = Config { timestamps: true, mss: MSS as u16 + 12, ..plain() };
    let mut bench = Bench::connected(config, RTT)?;
    bench.data(0, MSS);
    let old = |segment: &mut careof_wire::Segment| {
        segment.timestamps =
            segment.timestamps.map(|stamps| Timestamps { value: stamps.value - 5, ..stamps });
    };
    let next = bench.connection.rcv_nxt();
    let sent = bench.deliver_changed(|segment| {
        old(segment);
        segment.seq = next;
        segment.payload_len = MSS as u16;
    });
    expect("received", bench.connection.received(), u64::from(MSS))?;
    expect("answered", sent.iter().map(|out| out.ack).collect::<Vec<_>>(), vec![MSS])?;
    bench.deliver_changed(|segment| {
        old(segment);
        segment.seq = next;
        segment.flags = Flags::RST.with(Flags::ACK);
    });
    expect("closed by an old RST", bench.connection.is_closed(), true)
}

fn segment_size(row: &Row) -> Check {
    says(row, &["1448 bytes of data a segment (1460-12); 1460 without"])?;
    for (timestamps, wanted) in [(true, 1_448), (false, 1_460)] {
        let bench = Bench::connected(Config { timestamps, mss: 1_460, ..plain() }, RTT)?;
        expect("bytes a segment", bench.connection.snapshot().mss, wanted)?;
    }
    Ok(())
}

/// `5500:5000[5500-6000]`: data of 500 bytes from 5500 is answered by ACK 5000 with that block.
fn blocks(row: &Row) -> Check {
    let config = Config { sack: true, ..plain() };
    let mut bench = Bench::connected(config, RTT)?;
    // The stream begins at 5000 in the row.
    let begin = 5_000;
    let mut cases = 0;
    for word in row.expected.split([' ', ';']) {
        let Some((seq, wanted)) = word.split_once(':') else { continue };
        let Ok(seq) = seq.parse::<u32>() else { continue };
        let sent = bench.data(seq - begin, 500);
        expect(&format!("the answer to {seq}"), described(&sent, begin), wanted.to_owned())?;
        cases += 1;
    }
    if cases == 0 { Err(Outcome::NotRun("the row has no cases SEQ:ACK[..]".to_owned())) } else { Ok(()) }
}

fn described(sent: &[Out], begin: u32) -> String {
    let Some(out) = sent.last() else { return "nothing".to_owned() };
    let blocks: Vec<String> =
        out.sack.iter().map(|(left, right)| format!("{}-{}", left + begin, right + begin)).collect();
    let ack = out.ack + begin;
    if blocks.is_empty() { ack.to_string() } else { format!("{ack}[{}]", blocks.join(",")) }
}

/// RFC 2883's examples: what has arrived before, what arrives, and `ACK [blocks]`.
fn duplicates(row: &Row) -> Check {
    // Before, then the duplicate, as (left, right); the sequence numbers are the RFC's.
    let (before, last): (&[(u32, u32)], (u32, u32)) = match row.id.as_str() {
        "dsack-ex1" => (&[(3_000, 3_500), (3_500, 4_000)], (3_000, 3_500)),
        "dsack-ex2" => (&[(3_000, 3_500), (3_500, 4_000), (4_500, 5_000)], (3_000, 3_500)),
        "dsack-ex3" => (&[(3_500, 4_000), (4_500, 5_000), (5_000, 5_500)], (5_000, 5_500)),
        "dsack-ex4" => (&[(500, 1_000), (1_000, 1_500), (2_000, 2_500)], (1_000, 2_000)),
        "dsack-ex5" => (&[(1_000, 1_500), (2_000, 2_500), (3_000, 3_500)], (1_000, 2_500)),
        "dsack-ex6" => {
            (&[(500, 1_000), (1_500, 2_000), (2_000, 2_500), (3_500, 4_000), (2_500, 3_000)], (1_500, 3_000))
        }
        _ => return Err(Outcome::NotRun("an example that RFC 2883 does not have".to_owned())),
    };
    let wanted = match row.id.as_str() {
        // The row quotes what the RFC prints: 1000, 1500-2000 and then the block around it; the duplicate there is
        // 1500-2999 of which 1500-2000 and 2500-3000 had arrived.
        "dsack-ex6" => {
            return Err(Outcome::Unanswerable(
                "the row quotes the RFC's own contradictory example and predicts nothing".to_owned(),
            ));
        }
        _ => row.expected.replace(' ', ""),
    };
    let config = Config { sack: true, dsack: true, ..plain() };
    let mut bench = Bench::connected(config, RTT)?;
    let begin = before[0].0;
    for &(left, right) in before {
        bench.data(left - begin, right - left);
    }
    let sent = bench.data(last.0 - begin, last.1 - last.0);
    expect("the answer", described(&sent, begin), wanted)
}
