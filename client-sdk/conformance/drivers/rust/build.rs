//! Tells the driver which compiler built it.

use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").expect("cargo says which compiler it runs");
    let answer = Command::new(compiler).arg("--version").output().expect("the compiler runs");
    let version = String::from_utf8(answer.stdout).expect("a version is text");
    println!("cargo::rustc-env=COMPILER={}", version.trim());
    println!("cargo::rerun-if-changed=build.rs");
}
