//! The `toolgate` binary. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate_server::cli::main()
}
