//! Who else hears how a campaign stands: StatsD and Prometheus, by LibAFL's monitors.

use std::net::{SocketAddr, TcpListener};

use libafl::Error;
use libafl::monitors::stats::ClientStatsManager;
use libafl::monitors::statsd::StatsdMonitorTagFlavor;
use libafl::monitors::{Monitor, PrometheusMonitor, StatsdMonitor};
use libafl_bolts::ClientId;

use super::system;
use crate::campaign::CampaignError;
use crate::campaign::settings::Monitoring;

/// The monitors that are wanted.
pub(super) struct Monitors {
    statsd: Option<StatsdMonitor>,
    prometheus: Option<PrometheusMonitor>,
}

impl Monitors {
    /// Prepares them. Nothing is sent, and no thread started, before the first message.
    pub(super) fn new(wanted: &Monitoring) -> Result<Monitors, CampaignError> {
        let statsd = |to: SocketAddr| {
            let tags = StatsdMonitorTagFlavor::default();
            StatsdMonitor::new(to.ip().to_string(), to.port(), tags)
        };
        if let Some(address) = wanted.prometheus {
            // LibAFL's own error for it goes to nobody.
            TcpListener::bind(address).map_err(system(format!("listening at {address}")))?;
        }
        Ok(Monitors {
            statsd: wanted.statsd.map(statsd),
            prometheus: wanted.prometheus.map(PrometheusMonitor::new),
        })
    }
}

impl Monitor for Monitors {
    fn display(
        &mut self,
        stats: &mut ClientStatsManager,
        event: &str,
        sender: ClientId,
    ) -> Result<(), Error> {
        if let Some(statsd) = &mut self.statsd {
            statsd.display(stats, event, sender)?;
        }
        if let Some(prometheus) = &mut self.prometheus {
            prometheus.display(stats, event, sender)?;
        }
        Ok(())
    }
}
