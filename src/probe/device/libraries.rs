//! The HSA and HIP runtimes, opened while the program runs.
//!
//! In: nothing but what the loader finds. Out: an [`Answer`] of each. Refused: structs read by their layout, which differs between versions of one
//! library; only numbers and texts cross the border. To be called in a process of its own: a driver may end it.
//!
//! This is the one file with `unsafe`. Each use calls a C function of the runtime with the types of its public header, on memory that this file
//! owns and that outlives the call.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::{Library, Symbol};

use super::sysfs::pci_of;
use super::{Answer, Gpu};

/// File names of the HSA runtime; there has been one only.
const HSA: [&str; 1] = ["libhsa-runtime64.so.1"];
/// File names of the HIP runtime, newest first. The name without a number exists where compilers are installed.
const HIP: [&str; 4] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// Opens the first library that is there.
fn open(names: &[&str], answer: &mut Answer) -> Option<Library> {
    answer.tried = names.iter().map(|name| (*name).to_owned()).collect();
    for name in names {
        // SAFETY: opening runs the library's initialisers. It is the vendor's runtime by its public name, in a process that does nothing else.
        match unsafe { Library::new(name) } {
            Ok(library) => {
                answer.asked = Some((*name).to_owned());
                return Some(library);
            }
            Err(error) => {
                // A library that is there and cannot be loaded is something else than one that is not there.
                let text = error_text(&error);
                if !text.contains("No such file") && !text.contains("cannot open shared object") {
                    answer.error = Some(format!("{name} cannot be loaded: {text}"));
                }
            }
        }
    }
    None
}

fn error_text(error: &libloading::Error) -> String {
    use std::error::Error as _;
    let source = error.source().map(|source| source.to_string()).unwrap_or_default();
    if source.is_empty() { error.to_string() } else { source }
}

/// Looks a function up.
fn function<'a, F>(library: &'a Library, name: &str) -> Result<Symbol<'a, F>, String> {
    // SAFETY: the caller gives the type that the public header declares for this name; the symbol cannot outlive the library.
    unsafe { library.get(name.as_bytes()) }.map_err(|error| format!("it has no {name}: {}", error_text(&error)))
}

/// A text that a C function wrote into a buffer.
fn text_of(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().take_while(|byte| **byte != 0).map(|byte| byte.cast_unsigned()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

type Status = c_int;
type Handle = u64;
type AgentCallback = unsafe extern "C" fn(Handle, *mut c_void) -> Status;
type IterateAgents = unsafe extern "C" fn(AgentCallback, *mut c_void) -> Status;
type AgentInfo = unsafe extern "C" fn(Handle, c_int, *mut c_void) -> Status;
type IterateIsas = unsafe extern "C" fn(Handle, AgentCallback, *mut c_void) -> Status;
type IsaInfo = unsafe extern "C" fn(Handle, c_int, *mut c_void) -> Status;

/// Attributes of an agent by their number in `hsa.h` and `hsa_ext_amd.h`.
const NAME: c_int = 0;
const KIND: c_int = 17;
const COMPUTE_UNITS: c_int = 0xA002;
const LOCATION: c_int = 0xA006;
const DOMAIN: c_int = 0xA00F;
/// The kind of an agent that is a GPU.
const GPU: u32 = 1;
/// Attributes of an instruction set.
const ISA_LENGTH: c_int = 0;
const ISA_NAME: c_int = 1;
/// Longest name of an instruction set.
const LONGEST_ISA: u32 = 4096;

/// Adds a handle to the list behind `list`.
unsafe extern "C" fn collect(handle: Handle, list: *mut c_void) -> Status {
    // SAFETY: `list` is the `Vec<Handle>` that the caller of the iteration passes and keeps alive and untouched during the call.
    let list = unsafe { &mut *list.cast::<Vec<Handle>>() };
    list.push(handle);
    0
}

/// Asks the HSA runtime.
#[must_use]
pub fn hsa() -> Answer {
    let mut answer = Answer::default();
    let Some(library) = open(&HSA, &mut answer) else { return answer };
    match ask_hsa(&library) {
        Ok(devices) => answer.devices = devices,
        Err(error) => answer.error = Some(error),
    }
    // The runtime's own threads may still run; unloading it under them would end the process.
    std::mem::forget(library);
    answer
}

fn ask_hsa(library: &Library) -> Result<Vec<Gpu>, String> {
    let start = function::<unsafe extern "C" fn() -> Status>(library, "hsa_init")?;
    let iterate = function::<IterateAgents>(library, "hsa_iterate_agents")?;
    let info = function::<AgentInfo>(library, "hsa_agent_get_info")?;
    let isas = function::<IterateIsas>(library, "hsa_agent_iterate_isas")?;
    let isa_info = function::<IsaInfo>(library, "hsa_isa_get_info_alt")?;
    let check = |what: &str, status: Status| if status == 0 { Ok(()) } else { Err(format!("{what} gave 0x{status:x}")) };
    // SAFETY: `hsa_init` takes no arguments.
    check("hsa_init", unsafe { start() })?;
    let mut agents: Vec<Handle> = Vec::new();
    // SAFETY: `collect` has the callback's type, and `agents` outlives the call.
    check("hsa_iterate_agents", unsafe { iterate(collect, (&raw mut agents).cast()) })?;
    let number = |agent: Handle, attribute: c_int| -> Result<u32, String> {
        // Larger than the attribute, so that a runtime that writes eight bytes does no harm.
        let mut value = [0u32; 16];
        // SAFETY: the attributes asked for here are 32 bits wide, and the buffer has 64 bytes.
        check("hsa_agent_get_info", unsafe { info(agent, attribute, value.as_mut_ptr().cast()) })?;
        Ok(value[0])
    };
    let mut devices = Vec::new();
    for agent in agents {
        if number(agent, KIND)? != GPU {
            continue;
        }
        let mut name = [0 as c_char; 256];
        // SAFETY: the name is at most 64 bytes with its end, and the buffer has 256.
        check("hsa_agent_get_info(name)", unsafe { info(agent, NAME, name.as_mut_ptr().cast()) })?;
        let mut sets: Vec<Handle> = Vec::new();
        // SAFETY: as for the agents above.
        check("hsa_agent_iterate_isas", unsafe { isas(agent, collect, (&raw mut sets).cast()) })?;
        let mut isa = None;
        if let Some(set) = sets.first() {
            let mut length = [0u32; 16];
            // SAFETY: the length is 32 bits wide, and the buffer has 64 bytes.
            check("hsa_isa_get_info_alt(length)", unsafe { isa_info(*set, ISA_LENGTH, length.as_mut_ptr().cast()) })?;
            if length[0] > LONGEST_ISA {
                return Err(format!("hsa_isa_get_info_alt gives a name of {} bytes", length[0]));
            }
            let mut text = vec![0 as c_char; usize::try_from(length[0]).unwrap_or(0) + 64];
            // SAFETY: the buffer is longer than the length that the runtime gave.
            check("hsa_isa_get_info_alt(name)", unsafe { isa_info(*set, ISA_NAME, text.as_mut_ptr().cast()) })?;
            isa = Some(text_of(&text));
        }
        let name = text_of(&name);
        // The two must be one device's: `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`.
        let of_isa = isa.as_deref().and_then(|isa| isa.rsplit("--").next()).and_then(|isa| isa.split(':').next());
        if of_isa.is_some_and(|arch| arch != name) {
            return Err(format!("the agent calls itself '{name}', and its instruction set is '{}'", isa.unwrap_or_default()));
        }
        let pci = pci_of(u64::from(number(agent, DOMAIN)?), u64::from(number(agent, LOCATION)?));
        let units = u64::from(number(agent, COMPUTE_UNITS)?);
        devices.push(Gpu { arch: name, isa, pci: Some(pci), compute_units: Some(units), unique_id: None });
    }
    Ok(devices)
}

type Version = unsafe extern "C" fn(*mut c_int) -> Status;
type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status;
type Address = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status;
type ErrorName = unsafe extern "C" fn(Status) -> *const c_char;

/// Attributes of a device by their number, which has been the same from HIP 5.2 to 7.14.
const MAJOR: c_int = 23;
const MINOR: c_int = 61;
const MULTIPROCESSORS: c_int = 63;
/// Most devices that are asked about.
const MOST_DEVICES: c_int = 1024;

/// Asks the HIP runtime.
#[must_use]
pub fn hip() -> Answer {
    let mut answer = Answer::default();
    let Some(library) = open(&HIP, &mut answer) else { return answer };
    match ask_hip(&library, &mut answer.version) {
        Ok(devices) => answer.devices = devices,
        Err(error) => answer.error = Some(error),
    }
    // As above.
    std::mem::forget(library);
    answer
}

fn ask_hip(library: &Library, version: &mut Option<String>) -> Result<Vec<Gpu>, String> {
    let runtime = function::<Version>(library, "hipRuntimeGetVersion")?;
    let count = function::<Version>(library, "hipGetDeviceCount")?;
    let attribute = function::<Attribute>(library, "hipDeviceGetAttribute")?;
    let address = function::<Address>(library, "hipDeviceGetPCIBusId")?;
    let name = function::<ErrorName>(library, "hipGetErrorName")?;
    let check = |what: &str, status: Status| {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any number and gives a static text or null.
        let text = unsafe { name(status) };
        let text = if text.is_null() {
            String::from("unnamed")
        } else {
            // SAFETY: it is not null, and the runtime's texts end with a zero byte and live as long as the library.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(format!("{what} gave {status} ({text})"))
    };
    let mut value: c_int = 0;
    // SAFETY: the function writes one int.
    if unsafe { runtime(&raw mut value) } == 0 {
        *version = Some(value.to_string());
    }
    let mut devices: c_int = 0;
    // SAFETY: the function writes one int.
    check("hipGetDeviceCount", unsafe { count(&raw mut devices) })?;
    if !(0..=MOST_DEVICES).contains(&devices) {
        return Err(format!("hipGetDeviceCount gives {devices} devices"));
    }
    let number = |which: c_int, device: c_int| -> Result<u64, String> {
        let mut value: c_int = 0;
        // SAFETY: the function writes one int.
        check("hipDeviceGetAttribute", unsafe { attribute(&raw mut value, which, device) })?;
        u64::try_from(value).map_err(|_| format!("hipDeviceGetAttribute({which}) gives {value}"))
    };
    (0..devices)
        .map(|device| {
            let mut text = [0 as c_char; 256];
            // SAFETY: the function writes at most as many bytes as it is told, with the end.
            check("hipDeviceGetPCIBusId", unsafe { address(text.as_mut_ptr(), 128, device) })?;
            let (major, minor) = (number(MAJOR, device)?, number(MINOR, device)?);
            let units = number(MULTIPROCESSORS, device)?;
            let pci = text_of(&text).to_lowercase();
            Ok(Gpu { arch: format!("gfx{major}{minor:x}"), isa: None, pci: Some(pci), compute_units: Some(units), unique_id: None })
        })
        .collect()
}
