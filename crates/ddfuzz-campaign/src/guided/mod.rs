//! The campaign that is guided by coverage, on LibAFL.
//!
//! Workers are processes of LibAFL's [`Launcher`], each a fuzzer of LibAFL's parts on an executor
//! of ours. Through LLMP they give each other what reaches something new. This process is their
//! broker, and the one who writes the output directory: what workers find reaches it through a
//! socket ([`hub`]).

mod compare;
mod engine;
mod evaluate;
mod examiner;
mod executor;
mod finish;
mod hangs;
mod hub;
mod link;
mod monitors;
mod process;
mod remote;
mod wire;
mod worker;

use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use libafl::Error;
use libafl::events::launcher::ClientDescription;
use libafl::events::{EventConfig, Launcher, LlmpEventManagerBuilder, StdLlmpEventHook};
use libafl::inputs::BytesInput;
use libafl_bolts::core_affinity::Cores;
use libafl_bolts::llmp::{Listener, LlmpBroker, Tag};
use libafl_bolts::shmem::ShMemProvider;
use libafl_bolts::tuples::tuple_list;

use super::campaign_state::{CampaignState, lock};
use super::screen::Screen;
use super::settings::{DEFAULT_MAX_LEN, Settings};
use crate::{CampaignError, PauseGate, Summary};
pub use compare::Compared;
use ddfuzz_store::Store;
use engine::{GroupRegistry, GuidedEngine};
use hub::Hub;
use monitors::Monitors;
use process::{Parent, UnlinkedShMem};
use worker::{Manager, State, WorkerSettings};

/// What LibAFL's brokers say last; the name that it has for it is its own.
const EXITING: Tag = Tag(0x013c_5171);

/// Runs one call of the campaign that `store` belongs to, on a target that reports its coverage.
/// When `stop` turns true it saves its state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; what was found until
/// then is kept.
pub fn run(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &Settings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    let mut ledger = CampaignState::open(store, campaign)?;
    let asked = settings.max_len.or(ledger.checkpoint.max_len);
    let max_len = asked.unwrap_or(DEFAULT_MAX_LEN);
    ledger.checkpoint.max_len = Some(max_len);
    ledger.checkpoint.begin_count(settings.runs);
    ledger.save()?;
    let variants = settings.minimizing.variants;
    let registry = GroupRegistry::open(store, campaign, ledger, &settings.known, variants)?;
    let root = lock(store).reader().root().to_owned();
    let gate = PauseGate::default();
    let mut engine = GuidedEngine::new(store, settings, screen, stop, registry, &gate)?;
    engine.begin_build()?;
    loop {
        let mut hub = Hub::open()?;
        let brief = WorkerSettings {
            settings,
            root: root.clone(),
            socket: hub.socket().to_owned(),
            max_len,
            run_before: engine.registry.ledger.checkpoint.next,
        };
        launch(&brief, &mut hub, &mut engine)?;
        if !engine.take_build()? {
            // A worker that has not ended until now loses its connection.
            drop(hub);
            return engine.finish();
        }
    }
}

/// Starts the workers and serves them until they have ended.
fn launch(
    brief: &WorkerSettings<'_>,
    hub: &mut Hub,
    engine: &mut GuidedEngine<'_>,
) -> Result<(), CampaignError> {
    let (workers, links) = (brief.workers(), &brief.settings.network);
    let (listener, port) = listen(links.port.unwrap_or(0))?;
    let closer = listener.try_clone().map_err(system("opening a port"))?;
    let parent = Parent::this().map_err(system("reading the state of this process"))?;
    let cores = cores(workers)?;
    let before = Cell::new(0);
    let launcher = Launcher::builder()
        .shmem_provider(UnlinkedShMem::new().map_err(network)?)
        .configuration(EventConfig::AlwaysUnique)
        .monitor(Monitors::new(&brief.settings.monitoring)?)
        .cores(&cores)
        .overcommit(workers.div_ceil(cores.ids.len().max(1)))
        .launch_delay(0)
        .broker_port(port)
        .build()
        .run_client(
            |_: Option<State>, manager: Manager, client: ClientDescription| {
                worker::run(brief, manager, client.id(), before.get())
            },
        );
    let mut listener = Some(listener);
    let config = EventConfig::AlwaysUnique;
    let launched = launcher.launch_with_manager(|_, client, monitor| match client {
        Some(client) if client.id() > workers => process::exit(0),
        Some(client) => {
            before.set(process::become_worker(&parent, &brief.socket, client.id())?);
            let builder = LlmpEventManagerBuilder::new();
            let manager = builder.build_on_port(UnlinkedShMem::new()?, port, config)?;
            Ok((None, manager))
        }
        None => {
            let monitor = monitor.ok_or_else(|| Error::illegal_state("it was started twice"))?;
            let hook = StdLlmpEventHook::<BytesInput, _>::new(monitor)?;
            let mut broker = LlmpBroker::new(UnlinkedShMem::new()?, tuple_list!(hook))?;
            let inner = broker.inner_mut();
            if let Some(listener) = listener.take() {
                inner.launch_listener(Listener::Tcp(listener))?;
            }
            let link = links.join.and_then(|other| engine.join(other, port));
            engine.serve(hub, workers, || broker.broker_once().map(drop));
            drop(link);
            // LibAFL's threads that are linked to other brokers end with this, and these call
            // again: it may be another broker of ours that answers.
            broker.inner_mut().send_buf(EXITING, &[])?;
            Err(Error::shutting_down())
        }
    });
    if !parent.is_this() {
        // A worker that could not become one.
        process::exit(1);
    }
    // The thread that listens would keep the port for as long as this process lives.
    let _ = TcpStream::from(OwnedFd::from(closer)).shutdown(Shutdown::Both);
    launched.map_err(network)
}

/// The processors that the first so many workers begin on.
fn cores(workers: usize) -> Result<Cores, CampaignError> {
    let mut cores = Cores::all().map_err(network)?;
    let some = workers.min(cores.ids.len());
    cores.trim(some).map_err(network)?;
    Ok(cores)
}

/// Listens for workers and brokers, at loopback alone: LLMP has no authentication.
fn listen(port: u16) -> Result<(TcpListener, u16), CampaignError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let bound = listener.and_then(|listener| {
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    });
    bound.map_err(system(format!("listening at 127.0.0.1:{port}")))
}

fn network(error: Error) -> CampaignError {
    CampaignError::Network(error.to_string())
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> CampaignError {
    let what = what.into();
    move |source| CampaignError::System { what, source }
}
