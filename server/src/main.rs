//! The `toolgate` binary. Everything is in the library.

use std::process::ExitCode;

// A call allocates on one thread and frees on another, for which glibc's allocator takes locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    toolgate_server::cli::main()
}
