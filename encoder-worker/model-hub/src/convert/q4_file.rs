//! Parser for a BERT with four bits a weight, in one file with its vocabulary. The file is little-endian: a header, the
//! pieces of the vocabulary with their scores, the replacements of letters before pieces are looked up, and a directory
//! of tensors. The parser checks everything that the conversion relies on.

use std::collections::BTreeMap;

use super::reader::{Problem, Reader};

pub(super) const MAGIC: &[u8] = b"E5S1";
const VERSION: u32 = 1;
/// Number of weights in a block.
pub(super) const BLOCK_WEIGHTS: usize = 32;

const MOST_TENSORS: usize = 4_096;
const MOST_PIECES: usize = 1 << 20;
const MOST_REPLACEMENTS: usize = 1 << 17;

/// Sizes of the network.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) wide: usize,
    pub(super) vocabulary: usize,
    pub(super) positions: usize,
    pub(super) segments: usize,
    pub(super) epsilon: f32,
}

/// SentencePiece unigram vocabulary.
#[derive(Debug)]
pub(super) struct Vocabulary<'a> {
    /// Pieces with their scores, by id.
    pub(super) pieces: Vec<(&'a str, f32)>,
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) padding: usize,
    pub(super) unknown: usize,
    /// Replacements of single letters; other letters stay.
    pub(super) replacements: BTreeMap<char, String>,
}

/// Encoding of a tensor's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Blocks with four bits a weight.
    Q4,
    F32,
}

/// Tensor as stored in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tensor<'a> {
    pub(super) encoding: Encoding,
    /// Declared number of values.
    pub(super) count: usize,
    pub(super) content: &'a [u8],
}

/// Parsed file.
#[derive(Debug)]
pub(super) struct Q4File<'a> {
    pub(super) shape: Shape,
    pub(super) vocabulary: Vocabulary<'a>,
    pub(super) tensors: BTreeMap<&'a str, Tensor<'a>>,
}

impl<'a> Q4File<'a> {
    /// Parses a whole file; texts and tensors borrow from it.
    pub(super) fn parse(content: &'a [u8]) -> Result<Self, Problem> {
        let mut reader = Reader::new(content);
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err("it does not begin with E5S1".into());
        }
        let shape = Shape::read(&mut reader)?;
        let vocabulary = Vocabulary::read(&mut reader)?;
        if vocabulary.pieces.len() > shape.vocabulary {
            let pieces = vocabulary.pieces.len();
            let rows = shape.vocabulary;
            return Err(format!("{pieces} pieces, but only {rows} rows of embeddings"));
        }
        Ok(Self { shape, vocabulary, tensors: tensors(&mut reader)? })
    }
}

impl Shape {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Problem> {
        let version = reader.u32()?;
        if version != VERSION {
            return Err(format!("it is of version {version}, not {VERSION}"));
        }
        let shape = Self {
            hidden: reader.count("the hidden size", 1, 4_096)?,
            layers: reader.count("the number of layers", 1, 64)?,
            heads: reader.count("the number of heads", 1, 4_096)?,
            wide: reader.count("the intermediate size", 1, 16_384)?,
            vocabulary: reader.count("the vocabulary's size", 1, MOST_PIECES)?,
            positions: reader.count("the number of positions", 1, 65_536)?,
            segments: reader.count("the number of segments", 1, 64)?,
            epsilon: reader.f32()?,
        };
        reader.count("the weights of a block", BLOCK_WEIGHTS, BLOCK_WEIGHTS)?;
        if !(shape.epsilon > 0.0 && shape.epsilon < 1.0) {
            return Err(format!("the layer norms' epsilon is {}", shape.epsilon));
        }
        Ok(shape)
    }
}

impl<'a> Vocabulary<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Problem> {
        let count = reader.count("the number of pieces", 1, MOST_PIECES)?;
        let mut special = |what| reader.count(what, 0, count - 1);
        let begin = special("the id of the first token")?;
        let end = special("of the last token")?;
        let padding = special("of the padding")?;
        let unknown = special("of unknown pieces")?;
        let size = reader.u64()?;
        let bounds = reader.words(count + 1, u32::from_le_bytes)?;
        let scores = reader.words(count, f32::from_le_bytes)?;
        let texts = usize::try_from(size).map_err(|_| format!("pieces of {size} bytes"))?;
        let texts = reader.bytes(texts)?;
        let piece = |id: usize| piece(texts, bounds[id], bounds[id + 1], scores[id]);
        let pieces = (0..count)
            .map(|id| piece(id).ok_or_else(|| format!("piece {id} is no text with a score")))
            .collect::<Result<_, _>>()?;
        let replacements = replacements(reader)?;
        Ok(Self { pieces, begin, end, padding, unknown, replacements })
    }
}

fn piece(texts: &[u8], start: u32, end: u32, score: f32) -> Option<(&str, f32)> {
    let bytes = texts.get(start as usize..end as usize)?;
    let text = std::str::from_utf8(bytes).ok()?;
    score.is_finite().then_some((text, score))
}

fn replacements(reader: &mut Reader<'_>) -> Result<BTreeMap<char, String>, Problem> {
    let letter = |code| char::from_u32(code).ok_or_else(|| format!("{code:#x} is no letter"));
    let count = reader.count("the number of replacements", 0, MOST_REPLACEMENTS)?;
    // The size of the following part, which is not needed here.
    reader.u32()?;
    let mut found = BTreeMap::new();
    for _ in 0..count {
        let replaced = letter(reader.u32()?)?;
        let length = reader.u8()?;
        let with = reader.words(length.into(), u32::from_le_bytes)?;
        found.insert(replaced, with.into_iter().map(letter).collect::<Result<_, _>>()?);
    }
    Ok(found)
}

fn tensors<'a>(reader: &mut Reader<'a>) -> Result<BTreeMap<&'a str, Tensor<'a>>, Problem> {
    let mut found = BTreeMap::new();
    for _ in 0..reader.count("the number of tensors", 0, MOST_TENSORS)? {
        let length = reader.u16()?;
        let name = std::str::from_utf8(reader.bytes(length.into())?);
        let name = name.map_err(|_| "a tensor's name is not UTF-8".to_owned())?;
        let encoding = match reader.u8()? {
            0 => Encoding::F32,
            1 => Encoding::Q4,
            other => return Err(format!("tensor {name:?} is of the unknown kind {other}")),
        };
        let count = reader.u32()? as usize;
        let start = reader.u64()?;
        let size = reader.u64()?;
        let content =
            reader.slice(start, size).map_err(|problem| format!("tensor {name:?}: {problem}"))?;
        if found.insert(name, Tensor { encoding, count, content }).is_some() {
            return Err(format!("tensor {name:?} is there twice"));
        }
    }
    Ok(found)
}
