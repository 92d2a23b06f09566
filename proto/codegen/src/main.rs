//! Regenerates `proto/src/gen` from the `.proto` files, and `gateway/ext-proc/src/gen` from its own, without protoc. With
//! `--check` it writes nothing and reports a difference as an error, so that committed code can't fall behind the contracts.

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use prost::Message;

/// File name of the descriptor set that gRPC reflection serves.
const DESCRIPTORS: &str = "descriptors.bin";

/// Writes generated code into a folder.
type Generate<'a> = &'a dyn Fn(&Path) -> Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let check = env::args().skip(1).any(|argument| argument == "--check");
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let ext_proc = proto.join("../gateway/ext-proc");
    write_or_check(check, &proto.join("src/gen"), &|out| generate(&proto, out))?;
    write_or_check(check, &ext_proc.join("src/gen"), &|out| generate_ext_proc(&ext_proc, out))
}

/// Generates code into the folder of the committed code, or compares that with fresh code.
fn write_or_check(
    check: bool,
    committed: &Path,
    generate: Generate<'_>,
) -> Result<(), Box<dyn Error>> {
    if !check {
        return generate(committed);
    }
    let fresh = env::temp_dir().join(format!("toolgate-proto-{}", std::process::id()));
    let outcome = generate(&fresh).and_then(|()| compare(committed, &fresh));
    fs::remove_dir_all(&fresh)?;
    outcome
}

/// Generates the service of Envoy's external processing, without a client.
fn generate_ext_proc(root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let folder = root.join("proto");
    let mut compiler = protox::Compiler::new([&folder])?;
    compiler.include_source_info(true);
    compiler.open_files(proto_files(&folder.join("envoy/service/ext_proc/v3"))?)?;
    tonic_prost_build::configure()
        .build_client(false)
        .out_dir(out)
        .bytes(".envoy")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

fn generate(root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let mut compiler = protox::Compiler::new([root])?;
    compiler.include_imports(true).open_files(proto_files(&root.join("toolgate/v1"))?)?;
    fs::write(out.join(DESCRIPTORS), compiler.file_descriptor_set().encode_to_vec())?;
    // Comments become Rust documentation; reflection has no use for them.
    compiler.include_source_info(true);
    let descriptors = compiler.file_descriptor_set();
    tonic_prost_build::configure()
        .out_dir(out)
        .bytes(".toolgate.v1.RegisterServerRequest.tools_list_json")
        .bytes(".toolgate.v1.EmbedResponse.embeddings")
        .compile_fds(descriptors)?;
    Ok(())
}

fn proto_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("proto")) {
            files.push(path);
        }
    }
    // Directory order differs between machines; the descriptor set must not.
    files.sort();
    Ok(files)
}

fn compare(committed: &Path, fresh: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(fresh)? {
        let name = entry?.file_name();
        let old = fs::read(committed.join(&name)).unwrap_or_default();
        if old != fs::read(fresh.join(&name))? {
            let name = name.to_string_lossy();
            let committed = committed.display();
            return Err(format!("{committed}/{name} is not current: run `make proto`").into());
        }
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a command-line tool's face")]
fn report(message: &str) {
    eprintln!("{message}");
}
