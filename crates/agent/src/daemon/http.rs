//! As much HTTP as Prometheus needs: `GET /metrics`.

use super::server::{Parsed, Protocol};

/// What Prometheus's client library writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The protocol of the metrics.
#[derive(Debug)]
pub(crate) struct Http;

/// A request for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// Whether only the head of the answer is wanted.
    pub(crate) head: bool,
}

impl Metrics {
    /// The answer, with `body` as the metrics.
    pub(crate) fn answer(self, body: &str) -> Vec<u8> {
        response("200 OK", OPEN_METRICS, body, self.head)
    }
}

impl Protocol for Http {
    type Request = Metrics;

    const LONGEST_REQUEST: usize = 8192;

    fn parse(input: &[u8]) -> Parsed<Metrics> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(input) {
            Ok(httparse::Status::Partial) => return Parsed::Partial,
            Ok(httparse::Status::Complete(_)) => {}
            Err(_) => return Parsed::Nonsense(refusal("400 Bad Request", "this is no HTTP request\n")),
        }
        let head = match request.method {
            Some("GET") => false,
            Some("HEAD") => true,
            _ => return Parsed::Nonsense(refusal("405 Method Not Allowed", "ask by GET\n")),
        };
        let path = request.path.unwrap_or_default();
        match path.split_once('?').map_or(path, |(path, _)| path) {
            "/metrics" => Parsed::Request(Metrics { head }),
            _ => Parsed::Nonsense(response("404 Not Found", TEXT, "the metrics are at /metrics\n", head)),
        }
    }

    fn too_long() -> Vec<u8> {
        refusal("431 Request Header Fields Too Large", "the request is too long\n")
    }
}

fn refusal(status: &str, body: &str) -> Vec<u8> {
    response(status, TEXT, body, false)
}

fn response(status: &str, kind: &str, body: &str, head: bool) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    if !head {
        response.push_str(body);
    }
    response.into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answered(request: &str) -> String {
        match Http::parse(request.as_bytes()) {
            Parsed::Nonsense(answer) => String::from_utf8(answer).unwrap(),
            other => panic!("{request}: {other:?}"),
        }
    }

    #[test]
    fn the_metrics_are_asked_for_by_get_or_head() {
        for (request, head) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", false),
            ("GET /metrics?a=b HTTP/1.0\r\n\r\n", false),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", true),
        ] {
            assert_eq!(Http::parse(request.as_bytes()), Parsed::Request(Metrics { head }));
            for cut in 1..request.len() {
                assert_eq!(Http::parse(&request.as_bytes()[..cut]), Parsed::Partial);
            }
        }
        let whole = String::from_utf8(Metrics { head: false }.answer("x 1\n")).unwrap();
        assert!(whole.contains("Content-Length: 4\r\n") && whole.ends_with("\r\n\r\nx 1\n"), "{whole}");
        let head = String::from_utf8(Metrics { head: true }.answer("x 1\n")).unwrap();
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn everything_else_gets_its_status() {
        assert!(answered("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(answered("POST /metrics HTTP/1.1\r\n\r\n").contains("Allow: GET, HEAD"));
        assert!(answered("\u{1}\u{2}\r\n\r\n").starts_with("HTTP/1.1 400 "));
        assert!(answered("GET /metrics HTTP/9.9\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert!(answered(&many).starts_with("HTTP/1.1 400 "));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Http::parse(&bytes);
        }
    }
}
