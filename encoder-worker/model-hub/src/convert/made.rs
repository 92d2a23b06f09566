//! Generated file with four bits a weight, for tests.

use half::f16;

/// Content of a generated file; tests change parts of it.
pub(super) struct Made {
    pub(super) shape: [i32; 7],
    pub(super) epsilon: f32,
    pub(super) block: i32,
    pub(super) pieces: Vec<(Vec<u8>, f32)>,
    pub(super) special: [i32; 4],
    pub(super) replacements: Vec<(u32, Vec<u32>)>,
    pub(super) tensors: Vec<(String, u8, u32, Vec<u8>)>,
}

pub(super) const HIDDEN: usize = 32;
pub(super) const WIDE: usize = 64;

impl Made {
    /// Returns a network of one layer with a vocabulary of six pieces.
    pub(super) fn small() -> Self {
        let texts = ["<s>", "<pad>", "</s>", "<unk>", "\u{2581}hallo", "\"\\\u{1}"];
        let pieces = texts.iter().zip([0.0, 0.0, 0.0, 0.0, -3.5, -0.1]);
        let mut made = Self {
            shape: [HIDDEN as i32, 1, 2, WIDE as i32, 6, 8, 2],
            epsilon: 1e-12,
            block: 32,
            pieces: pieces.map(|(text, score)| (text.as_bytes().to_vec(), score)).collect(),
            special: [0, 2, 1, 3],
            replacements: vec![(1, vec![]), (9, vec![32]), (0xff48, vec![104]), (0x200b, vec![32])],
            tensors: Vec::new(),
        };
        made.add_q4("emb.word", 6 * HIDDEN);
        made.add_f32("emb.pos", 8 * HIDDEN);
        made.add_f32("emb.type", 2 * HIDDEN);
        made.add_f32("emb.ln.w", HIDDEN);
        made.add_f32("emb.ln.b", HIDDEN);
        for part in ["q", "k", "v", "ao", "fi", "fo", "aln", "oln"] {
            let outputs = if part == "fi" { WIDE } else { HIDDEN };
            let inputs = if part == "fo" { WIDE } else { HIDDEN };
            match part {
                "aln" | "oln" => made.add_f32(&format!("l0.{part}.w"), HIDDEN),
                _ => made.add_q4(&format!("l0.{part}.w"), outputs * inputs),
            }
            made.add_f32(&format!("l0.{part}.b"), outputs);
        }
        made
    }

    fn add_f32(&mut self, name: &str, count: usize) {
        let values = (0..count).flat_map(|i| (1.0 + i as f32 / 8.0).to_le_bytes());
        self.tensors.push((name.into(), 0, count as u32, values.collect()));
    }

    fn add_q4(&mut self, name: &str, count: usize) {
        let block = |number: usize| {
            let scale = f16::from_f32(0.25 + number as f32).to_le_bytes();
            scale.into_iter().chain((0..16).map(move |byte| (byte * 17 + number) as u8))
        };
        let content = (0..count / 32).flat_map(block).collect();
        self.tensors.push((name.into(), 1, count as u32, content));
    }

    pub(super) fn tensor(&mut self, name: &str) -> &mut (String, u8, u32, Vec<u8>) {
        self.tensors.iter_mut().find(|tensor| tensor.0 == name).expect("it is there")
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut file = b"E5S1\x01\0\0\0".to_vec();
        self.shape.iter().for_each(|size| file.extend(size.to_le_bytes()));
        file.extend(self.epsilon.to_le_bytes());
        file.extend(self.block.to_le_bytes());
        file.extend((self.pieces.len() as i32).to_le_bytes());
        self.special.iter().for_each(|id| file.extend(id.to_le_bytes()));
        let texts: Vec<u8> = self.pieces.iter().flat_map(|piece| piece.0.clone()).collect();
        file.extend((texts.len() as u64).to_le_bytes());
        let mut bound = 0_u32;
        file.extend(bound.to_le_bytes());
        for (text, _) in &self.pieces {
            bound += text.len() as u32;
            file.extend(bound.to_le_bytes());
        }
        self.pieces.iter().for_each(|(_, score)| file.extend(score.to_le_bytes()));
        file.extend(texts);
        file.extend((self.replacements.len() as i32).to_le_bytes());
        file.extend(0_u32.to_le_bytes());
        for (letter, with) in &self.replacements {
            file.extend(letter.to_le_bytes());
            file.push(with.len() as u8);
            with.iter().for_each(|letter| file.extend(letter.to_le_bytes()));
        }
        self.push_tensors(&mut file);
        file
    }

    fn push_tensors(&self, file: &mut Vec<u8>) {
        file.extend((self.tensors.len() as i32).to_le_bytes());
        let directory: usize = self.tensors.iter().map(|tensor| tensor.0.len() + 23).sum();
        let mut start = file.len() + directory;
        for (name, kind, count, content) in &self.tensors {
            file.extend((name.len() as u16).to_le_bytes());
            file.extend(name.as_bytes());
            file.push(*kind);
            file.extend(count.to_le_bytes());
            file.extend((start as u64).to_le_bytes());
            file.extend((content.len() as u64).to_le_bytes());
            start += content.len();
        }
        self.tensors.iter().for_each(|tensor| file.extend(&tensor.3));
    }
}
