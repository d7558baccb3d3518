//! Statistics of a guided campaign for monitoring systems: StatsD packets and a page of metrics for
//! Prometheus.
//!
//! Both use the names of LibAFL's monitors, so that dashboards for these fit. LibAFL's monitors are
//! not used, because they depend on an asynchronous HTTP server of forty packages.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use libafl::Error;
use libafl::monitors::Monitor;
use libafl::monitors::stats::{ClientStats, ClientStatsManager, UserStatsValue};
use libafl_bolts::{ClientId, current_time};

use super::system;
use crate::CampaignError;
use crate::settings::Monitoring;

/// Time that a client of the metrics page (Prometheus) has to send its HTTP request, and to read
/// the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Greatest number of bytes that are read from the head of an HTTP request.
const LONGEST_REQUEST: usize = 8192;

/// A LibAFL monitor that sends the statistics of a campaign to StatsD and serves them to
/// Prometheus, each only if the settings ask for it.
pub(super) struct Monitors {
    statsd: Option<(UdpSocket, SocketAddr)>,
    prometheus: Option<Prometheus>,
}

impl Monitors {
    /// Creates the monitor as the settings `wanted` say: opens the socket for StatsD and the port
    /// for Prometheus, each only if wanted. Fails if either cannot be opened.
    pub(super) fn new(wanted: &Monitoring) -> Result<Monitors, CampaignError> {
        let socket = |to: SocketAddr| {
            let any = SocketAddr::from(match to {
                SocketAddr::V4(_) => (std::net::IpAddr::from([0, 0, 0, 0]), 0),
                SocketAddr::V6(_) => (std::net::IpAddr::from([0; 16]), 0),
            });
            let opened = UdpSocket::bind(any).map(|socket| (socket, to));
            opened.map_err(system(format!("sending statistics to {to}")))
        };
        let listen = |at: SocketAddr| {
            let listener = TcpListener::bind(at);
            let listener = listener.map_err(system(format!("listening at {at}")))?;
            Ok::<_, CampaignError>(Prometheus {
                page: Arc::default(),
                listener: Some(listener),
            })
        };
        Ok(Monitors {
            statsd: wanted.statsd.map(socket).transpose()?,
            prometheus: wanted.prometheus.map(listen).transpose()?,
        })
    }
}

impl Monitor for Monitors {
    fn display(
        &mut self,
        stats: &mut ClientStatsManager,
        _event: &str,
        sender: ClientId,
    ) -> Result<(), Error> {
        stats.client_stats_insert(sender)?;
        if let Some((socket, to)) = &self.statsd {
            for (name, value) in gauges(stats) {
                // A server that is down misses packets; the next ones follow in seconds.
                let _ = socket.send_to(format!("{name}:{value}|g").as_bytes(), to);
            }
        }
        if let Some(prometheus) = &mut self.prometheus {
            prometheus.publish(page(stats));
        }
        Ok(())
    }
}

/// Returns the gauges of the campaign that are sent to StatsD: LibAFL's name and the value of each;
/// those without a value are left out.
fn gauges(stats: &mut ClientStatsManager) -> Vec<(&'static str, f64)> {
    let global = stats.global_stats();
    let mut gauges = vec![
        ("execs_done", global.total_execs as f64),
        ("execs_per_sec", global.execs_per_sec),
        ("corpus_count", global.corpus_size as f64),
        ("saved_solutions", global.objective_size as f64),
    ];
    if let Some(items) = stats.item_geometry() {
        gauges.extend([
            ("corpus_found", items.own_finds as f64),
            ("corpus_imported", items.imported as f64),
            ("pending_favs", items.pend_fav as f64),
            ("pending_total", items.pending as f64),
        ]);
        gauges.extend(items.stability.map(|stability| ("stability", stability)));
    }
    if let Some(edges) = stats.edges_coverage() {
        gauges.push(("edges_found", edges.edges_hit as f64));
        if edges.edges_total > 0 {
            let density = edges.edges_hit as f64 / edges.edges_total as f64;
            gauges.push(("map_density", density));
        }
    }
    gauges
}

/// Returns the metrics page in Prometheus's text format: the whole campaign (`client="global"`) and
/// each worker.
fn page(stats: &mut ClientStatsManager) -> String {
    let global = stats.global_stats();
    let all = [
        global.corpus_size as f64,
        global.objective_size as f64,
        global.total_execs as f64,
        global.execs_per_sec,
        global.run_time.as_secs() as f64,
        global.client_stats_count as f64,
    ];
    let workers = global.client_stats_count as f64;
    let mut rows = vec![("global".to_owned(), all)];
    let mut custom = custom_stats("global", stats.aggregated().iter());
    for &id in stats.client_ids_sorted() {
        let Ok(client) = stats.get(id) else { continue };
        let name = id.0.to_string();
        let user = client.user_stats().iter();
        custom += &custom_stats(&name, user.map(|(key, value)| (key, value.value())));
        rows.push((name, figures(&mut client.clone(), workers)));
    }
    let mut page = String::new();
    for (at, (name, help)) in METRICS.iter().enumerate() {
        let _ = writeln!(page, "# HELP {name} {help}.\n# TYPE {name} gauge");
        for (client, figures) in &rows {
            let _ = writeln!(page, "{name}{{client=\"{client}\"}} {}", figures[at]);
        }
    }
    let help = "Figures that feedbacks and observers report, by name";
    let _ = writeln!(page, "# HELP custom_stat {help}.\n# TYPE custom_stat gauge");
    page + &custom
}

/// The metrics on the page for Prometheus, each with its name and help text.
const METRICS: [(&str, &str); 6] = [
    ("corpus_count", "Inputs in the corpus"),
    ("objective_count", "Crashing inputs that were found"),
    ("executions_total", "Runs of the target"),
    ("execution_rate", "Runs per second"),
    ("runtime_seconds", "Seconds since the start"),
    ("clients_count", "Workers"),
];

/// Returns the values of one worker for the page for Prometheus, in the order of [`METRICS`].
fn figures(client: &mut ClientStats, workers: f64) -> [f64; 6] {
    let now = current_time();
    [
        client.corpus_size() as f64,
        client.objective_size() as f64,
        client.executions() as f64,
        client.execs_per_sec(now),
        now.saturating_sub(client.start_time()).as_secs() as f64,
        workers,
    ]
}

/// Returns the lines of the metric `custom_stat` on the page for Prometheus, for the client
/// (worker, or `global`) named `client`, sorted by name. A ratio is shown as a percentage; the
/// ratio of covered edges is also shown as two counts. Values that are text are left out.
fn custom_stats<'a>(
    client: &str,
    stats: impl Iterator<Item = (&'a std::borrow::Cow<'static, str>, &'a UserStatsValue)>,
) -> String {
    let mut figures: Vec<(String, f64)> = Vec::new();
    for (key, value) in stats {
        let value = match value {
            UserStatsValue::Number(number) => *number as f64,
            UserStatsValue::Float(number) => *number,
            UserStatsValue::Percent(part) => part * 100.0,
            UserStatsValue::Ratio(part, whole) => {
                if key == "edges" {
                    figures.push(("edges_hit".to_owned(), *part as f64));
                    figures.push(("edges_total".to_owned(), *whole as f64));
                }
                100.0 * *part as f64 / (*whole).max(1) as f64
            }
            UserStatsValue::String(_) => continue,
        };
        figures.push((key.to_string(), value));
    }
    figures.sort_by(|one, other| one.0.cmp(&other.0));
    let line = |(stat, value): (String, f64)| {
        format!("custom_stat{{client=\"{client}\",stat=\"{stat}\"}} {value}\n")
    };
    figures.into_iter().map(line).collect()
}

/// The metrics page for Prometheus, and the port at which a thread, started by the first update,
/// serves it.
struct Prometheus {
    page: Arc<Mutex<String>>,
    /// The port at which the metrics page is served; `None` after the first update, when the
    /// serving thread has it.
    listener: Option<TcpListener>,
}

impl Prometheus {
    /// Replaces the metrics page for Prometheus with `text`; the first call starts the thread that
    /// serves it.
    fn publish(&mut self, text: String) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text;
        let Some(listener) = self.listener.take() else {
            return;
        };
        let page = Arc::clone(&self.page);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Clients are served one by one: a request takes less than a millisecond.
                let _ = answer(stream, &page);
            }
        });
    }
}

/// Answers one HTTP request: sends the metrics page for `GET /metrics`, and 404 for anything else.
fn answer(mut stream: TcpStream, page: &Mutex<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        match stream.read(&mut part)? {
            0 => break,
            read => request.extend_from_slice(&part[..read]),
        }
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        let page = page.lock().unwrap_or_else(PoisonError::into_inner);
        ("200 OK", page.clone())
    } else {
        (
            "404 Not Found",
            "the statistics are at /metrics\n".to_owned(),
        )
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
