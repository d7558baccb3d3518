//! The coverage-guided campaign, built from LibAFL's parts.
//!
//! Workers are processes of LibAFL's [`Launcher`]; each is a LibAFL fuzzer with ddfuzz's executor.
//! They exchange inputs with new coverage by LLMP (LibAFL's message passing). The main process is
//! their broker, and writes the output directory: workers send it the crashes that they find
//! through a socket ([`server`]).

mod broker_link;
mod compare;
mod engine;
mod evaluate;
mod executor;
mod failures;
mod hang_examiner;
mod hangs;
mod havoc;
mod messages;
mod monitors;
mod mutants;
mod process;
mod reached_code;
mod server;
mod solve;
mod structure;
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

use super::campaign_state::CampaignState;
use super::lock;
use super::screen::Screen;
use super::settings::{DEFAULT_MAX_LEN, Settings};
use crate::{CampaignError, PauseGate, RecordedSettings, Summary};
pub use compare::ComparisonValues;
use ddfuzz_store::{Kind, Store};
use engine::{GuidedEngine, open_groups};
use monitors::Monitors;
use process::{Parent, UnlinkedShMem};
use server::WorkerServer;
use worker::{Manager, State, WorkerSettings};

/// Tag of the message with which a LibAFL broker tells its clients to end; LibAFL does not export
/// this constant.
const EXITING: Tag = Tag(0x013c_5171);

/// Runs one call of ddfuzz for the guided campaign with the id `campaign`, in the output directory
/// of `store`, on a target that reports its coverage. Starts the workers again whenever the program
/// is rebuilt. When `stop` turns true, saves the state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; crashes that were
/// stored before the error are kept.
pub fn run(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &Settings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    let mut state = CampaignState::open(store, campaign)?;
    let asked = settings.max_len.or(state.checkpoint.max_len);
    let max_len = asked.unwrap_or(DEFAULT_MAX_LEN);
    state.checkpoint.max_len = Some(max_len);
    state.checkpoint.settings = Some(RecordedSettings::of(settings));
    state.checkpoint.begin_count(settings.runs);
    state.save()?;
    let groups = open_groups(store, campaign, settings)?;
    // A killed call may have written the counts of groups after its last checkpoint.
    for kind in Kind::ALL {
        for group in lock(store).reader().groups(kind)? {
            let written = group.record.seen.get(campaign).copied().unwrap_or(0);
            let major = group.record.major.short();
            state.checkpoint.raise_count(kind, major, written);
        }
    }
    let root = lock(store).reader().root().to_owned();
    let gate = PauseGate::default();
    let mut engine = GuidedEngine::new(store, settings, screen, stop, (state, groups), &gate)?;
    engine.begin_build()?;
    loop {
        let mut server = WorkerServer::open()?;
        let brief = WorkerSettings {
            settings,
            root: root.clone(),
            socket: server.socket().to_owned(),
            max_len,
            run_before: engine.state.checkpoint.next,
            abandon_when: engine.begin_fuzzing(),
        };
        launch(&brief, &mut server, &mut engine)?;
        if !engine.take_build()? {
            // Closes the connections of workers that have not ended.
            drop(server);
            return engine.finish();
        }
    }
}

/// Starts the worker processes and LibAFL's broker, and serves them until the workers have ended.
/// In the forked workers it does not return.
fn launch(
    brief: &WorkerSettings<'_>,
    server: &mut WorkerServer,
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
            engine.serve(server, workers, || broker.broker_once().map(drop));
            drop(link);
            // Ends LibAFL's threads that are linked to other brokers; these reconnect, perhaps to
            // our next broker.
            broker.inner_mut().send_buf(EXITING, &[])?;
            Err(Error::shutting_down())
        }
    });
    if !parent.is_this() {
        // A forked child that could not become a worker.
        process::exit(1);
    }
    // Else the listening thread would keep the port until this process ends.
    let _ = TcpStream::from(OwnedFd::from(closer)).shutdown(Shutdown::Both);
    launched.map_err(network)
}

/// Returns the set of processors on which LibAFL starts the workers: one for each worker, or all
/// processors if there are more workers than processors.
fn cores(workers: usize) -> Result<Cores, CampaignError> {
    let mut cores = Cores::all().map_err(network)?;
    let some = workers.min(cores.ids.len());
    cores.trim(some).map_err(network)?;
    Ok(cores)
}

/// Opens the TCP port `port` (0: any free one) to which workers and brokers connect, on the
/// loopback interface only, since LLMP (LibAFL's message passing) has no authentication. Returns
/// the listener and its port.
fn listen(port: u16) -> Result<(TcpListener, u16), CampaignError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let bound = listener.and_then(|listener| {
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    });
    bound.map_err(system(format!("listening at 127.0.0.1:{port}")))
}

/// Converts an error of LibAFL, which concerns the connection of its processes, to
/// [`CampaignError::Network`].
fn network(error: Error) -> CampaignError {
    CampaignError::Network(error.to_string())
}

/// Returns a function that converts an I/O error to [`CampaignError::System`]. `what`: the action
/// that has failed, as text.
fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> CampaignError {
    let what = what.into();
    move |source| CampaignError::System { what, source }
}
