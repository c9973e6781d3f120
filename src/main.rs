//! Thin binary: hands the arguments to the library and the exit code to the system.
#![allow(clippy::print_stdout, clippy::print_stderr)]
fn main() {
    let args: Vec<std::path::PathBuf> = std::env::args().skip(2).map(Into::into).collect();
    match rlk_lint::routes::callgraph::of_paths(&args, 1) {
        Ok(graph) => println!("{}", serde_json::to_string_pretty(&graph).unwrap_or_default()),
        Err(error) => eprintln!("{error}"),
    }
}
