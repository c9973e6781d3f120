//! rocprofv3's own database, its default: SQLite with the view `kernels`.
//!
//! In: a path, opened for reading only and as if nobody else wrote it. Out: dispatches by process. Refused: see [`super`]; also a file that is no
//! database or is damaged, and a view without the columns that are needed.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{Process, Refusal, Shape, blocks_of, plain_name};

/// Names of the column with the device's number, by version.
const AGENT: [&str; 3] = ["agent_abs_index", "agent_absolute_index", "agent_index"];
/// Columns of the view that are needed besides it, in the order in which they are read.
const COLUMNS: [&str; 10] = ["pid", "name", "queue_id", "start", "workgroup_x", "workgroup_y", "workgroup_z", "grid_x", "grid_y", "grid_z"];

fn refused(cause: rusqlite::Error) -> Refusal {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let reason = match cause.sqlite_error_code() {
        Some(DatabaseCorrupt) => "trace-truncated",
        Some(NotADatabase) => "trace-foreign",
        _ => "trace-unreadable",
    };
    (reason, format!("SQLite says: {cause}"))
}

/// Reads a database.
///
/// # Errors
/// Why it is no observation.
pub fn read(path: &Path) -> Result<BTreeMap<u64, Process>, Refusal> {
    let mut address = String::from("file:");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => address.push(char::from(byte)),
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    // Immutable: no journal is looked for and no file is made beside it.
    address.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(&address, flags).map_err(refused)?;
    // Functions and virtual tables that a schema names are not run.
    database.pragma_update(None, "trusted_schema", "OFF").map_err(refused)?;
    let whole: String = database.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(refused)?;
    if whole != "ok" {
        return Err(("trace-truncated", format!("the database is damaged: {whole}")));
    }
    let present: Vec<String> = database
        .prepare("SELECT name FROM pragma_table_info('kernels')")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(refused)?;
    let agent = AGENT.into_iter().find(|name| present.iter().any(|other| other == name)).unwrap_or("NULL");
    let missing: Vec<&str> = COLUMNS.into_iter().filter(|column| !present.iter().any(|other| other == column)).collect();
    if !missing.is_empty() {
        return Err(("trace-foreign", format!("its view 'kernels' lacks {}", missing.join(", "))));
    }
    // The view joins tables and leaves out what does not join; then dispatches are there that nobody sees.
    let count = |table: &str| database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0)).map_err(refused);
    let (all, shown) = (count("rocpd_kernel_dispatch")?, count("kernels")?);
    if all != shown {
        return Err(("trace-truncated", format!("its view 'kernels' shows {shown} of {all} dispatches")));
    }
    let mut processes: BTreeMap<u64, Process> = BTreeMap::new();
    let mut kernels: BTreeMap<String, u64> = BTreeMap::new();
    let mut query = database.prepare(&format!("SELECT {}, {agent} FROM kernels", COLUMNS.join(", "))).map_err(refused)?;
    let mut rows = query.query([]).map_err(refused)?;
    while let Some(row) = rows.next().map_err(refused)? {
        let number = |column: usize| {
            let value = row.get::<_, i64>(column).map_err(refused)?;
            u64::try_from(value).map_err(|_| ("trace-unreadable", format!("{} is negative", COLUMNS.get(column).unwrap_or(&""))))
        };
        let pid = number(0)?;
        let name = row.get_ref(1).map_err(refused)?.as_str().map_err(|error| ("trace-unreadable", format!("a kernel's name: {error}")))?;
        let name = plain_name(name);
        let kernel = match kernels.get(name) {
            Some(kernel) => *kernel,
            None => {
                let fresh = u64::try_from(kernels.len()).unwrap_or(u64::MAX);
                kernels.insert(name.to_owned(), fresh);
                fresh
            }
        };
        let process = processes.entry(pid).or_default();
        process.kernels.entry(kernel).or_insert_with(|| name.to_owned());
        let size = |column: usize| row.get::<_, u32>(column).map_err(refused);
        let workgroup = [size(4)?, size(5)?, size(6)?];
        let grid = [size(7)?, size(8)?, size(9)?];
        let shape = Shape {
            kernel,
            agent: row.get::<_, Option<i64>>(10).map_err(refused)?.and_then(|index| u64::try_from(index).ok()).unwrap_or(u64::MAX),
            workgroup: Some(workgroup),
            blocks: blocks_of(grid, workgroup),
        };
        process.push(number(3)?, size(2)?, shape);
    }
    // The architecture is a fact of its own; a database without it is still an observation.
    let agents: Vec<(i64, String)> = database
        .prepare("SELECT absolute_index, name FROM rocpd_info_agent")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .unwrap_or_default();
    for process in processes.values_mut() {
        process.agents.extend(agents.iter().filter_map(|(index, name)| Some((u64::try_from(*index).ok()?, name.clone()))));
    }
    Ok(processes)
}
