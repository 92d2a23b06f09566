//! Tests of the steps in plain loops, with exactly the upload and sizes that a GPU gets, against the definition of the
//! network.

use std::convert::Infallible;

use super::super::model::{self, HostMatrix};
use super::super::plan::{Plan, Product};
use super::*;
use crate::adapter::AdapterChoice;
use crate::backend::Batch;
use crate::model_dir::ModelDir;
use crate::tiny_model::{TinyModel, ids_of, reference};
use crate::weights::Weights;

const TEXTS: [&str; 4] =
    ["a b c", "", "i h g f e d c b a i h g f e d c b a i h g f e d c b a i h g f e d c", "c c"];

/// Device of plain loops. Besides the buffers, it gets the same arguments as the kernels.
struct Loops {
    hidden: usize,
    heads: usize,
    epsilon: f32,
    plan: Plan,
    upload: Vec<u32>,
    slots: [Vec<f32>; 5],
    result: Vec<f32>,
    launches: usize,
}

impl Loops {
    fn new(dir: &ModelDir, batch: &Batch) -> Self {
        let plan = Plan::new(batch);
        let mut upload = vec![0; plan.words()];
        plan.write(batch, &mut upload);
        let hidden = dir.bert.hidden_size;
        let wide = dir.bert.intermediate_size;
        Self {
            hidden,
            heads: dir.bert.num_attention_heads,
            epsilon: dir.bert.layer_norm_eps as f32,
            plan,
            upload,
            slots: Slot::ALL.map(|slot| vec![f32::NAN; plan.tokens * slot.width(hidden, wide)]),
            result: Vec::new(),
            launches: 0,
        }
    }

    fn normalise(&self, row: &mut [f32], norm: &[f32]) {
        let count = row.len() as f32;
        let mean = row.iter().sum::<f32>() / count;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / count;
        let (gamma, beta) = norm.split_at(self.hidden);
        for (x, (gamma, beta)) in row.iter_mut().zip(gamma.iter().zip(beta)) {
            *x = (*x - mean) / (variance + self.epsilon).sqrt() * gamma + beta;
        }
    }

    /// Returns the weighted values of one query and one head.
    fn attend_one(&self, qkv: &[f32], text: (usize, usize), query: usize, head: usize) -> Vec<f32> {
        let size = self.hidden / self.heads;
        let part = |token: usize, part: usize| {
            let start = token * 3 * self.hidden + part * self.hidden + head * size;
            &qkv[start..start + size]
        };
        let (mut sum, mut total) = (vec![0.0; size], 0.0);
        for key in text.0..text.1 {
            let products = part(query, 0).iter().zip(part(key, 1)).map(|(q, k)| q * k);
            let weight = products.sum::<f32>().exp2();
            sum.iter_mut().zip(part(key, 2)).for_each(|(sum, value)| *sum += weight * value);
            total += weight;
        }
        sum.iter().map(|x| x / total).collect()
    }
}

impl Steps for Loops {
    type Matrix = HostMatrix;
    type Vector = Vec<f32>;
    type Error = Infallible;

    fn embed(&mut self, tables: &Embeddings<HostMatrix, Vec<f32>>) -> Result<(), Infallible> {
        self.launches += 1;
        let hidden = self.hidden;
        let row = |table: &HostMatrix, row: u32| {
            assert!((row as usize) < table.rows);
            table.values[row as usize * hidden..(row as usize + 1) * hidden].to_vec()
        };
        for token in 0..self.plan.tokens {
            let mut sum = row(&tables.words, self.upload[self.plan.ids()][token]);
            let place = row(&tables.positions, self.upload[self.plan.positions()][token]);
            sum.iter_mut().zip(place).for_each(|(to, add)| *to += add);
            self.normalise(&mut sum, &tables.norm);
            self.slots[Slot::Hidden as usize][token * hidden..][..hidden].copy_from_slice(&sum);
        }
        Ok(())
    }

    /// Multiplies as cuBLAS does: down the columns, with the first matrix transposed.
    fn multiply(&mut self, from: Slot, matrix: &HostMatrix, to: Slot) -> Result<(), Infallible> {
        self.launches += 1;
        let [from, into] = self.slots.get_disjoint_mut([from as usize, to as usize]).expect("two");
        let product = Product::new(self.plan.tokens, matrix.columns, matrix.rows);
        let [m, n, k] = [product.m, product.n, product.k].map(|size| size as usize);
        let [lda, ldb, ldc] = [product.lda, product.ldb, product.ldc].map(|step| step as usize);
        assert_eq!(into.len(), m * n);
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let terms = (0..k).map(|l| matrix.values[l + i * lda] * from[l + j * ldb]);
            into[i + j * ldc] = terms.sum();
        }
        Ok(())
    }

    fn attend(&mut self, bias: &Vec<f32>) -> Result<(), Infallible> {
        self.launches += 1;
        let size = self.hidden / self.heads;
        let qkv = self.slots[Slot::Qkv as usize].iter().zip(bias.iter().cycle());
        let qkv: Vec<f32> = qkv.map(|(x, bias)| x + bias).collect();
        let tiles = self.upload[self.plan.tiles()].to_vec();
        for tile in tiles.chunks_exact(3).map(|tile| [tile[0], tile[1], tile[2]]) {
            let [begin, end, first] = tile.map(|token| token as usize);
            for query in first..end.min(first + 64) {
                for head in 0..self.heads {
                    let values = self.attend_one(&qkv, (begin, end), query, head);
                    let at = query * self.hidden + head * size;
                    self.slots[Slot::Context as usize][at..at + size].copy_from_slice(&values);
                }
            }
        }
        Ok(())
    }

    fn add_norm(&mut self, rows: Slot, residual: Slot, with: &Vec<f32>) -> Result<(), Infallible> {
        self.launches += 1;
        let residual = self.slots[residual as usize].clone();
        let mut into = std::mem::take(&mut self.slots[rows as usize]);
        let (bias, norm) = with.split_at(self.hidden);
        for (row, add) in into.chunks_exact_mut(self.hidden).zip(residual.chunks(self.hidden)) {
            row.iter_mut().zip(add.iter().zip(bias)).for_each(|(x, (add, bias))| *x += add + bias);
            self.normalise(row, norm);
        }
        self.slots[rows as usize] = into;
        Ok(())
    }

    fn activate(&mut self, bias: &Vec<f32>) -> Result<(), Infallible> {
        self.launches += 1;
        let wide = self.slots[Slot::Wide as usize].iter_mut();
        wide.zip(bias.iter().cycle()).for_each(|(x, bias)| *x = (*x + bias).max(0.0));
        Ok(())
    }

    fn pool(&mut self) -> Result<(), Infallible> {
        self.launches += 1;
        for text in self.upload[self.plan.bounds()].windows(2) {
            let rows = text[0] as usize..text[1] as usize;
            for column in 0..self.hidden {
                let at = |row: usize| self.slots[Slot::Hidden as usize][row * self.hidden + column];
                let sum: f32 = rows.clone().map(at).sum();
                self.result.push(sum / rows.len() as f32);
            }
        }
        Ok(())
    }
}

fn run(model: &TinyModel, texts: &[&str]) -> Loops {
    let dir = ModelDir::open(model.path()).expect("the directory is right");
    let content = dir.read_weights(&AdapterChoice::None).expect("the weights are there");
    let weights = Weights::open(&dir, &content).expect("the weights are whole");
    let network = model::read(&weights).expect("the weights fit");
    let mut batch = Batch::default();
    texts.iter().for_each(|text| batch.push(&ids_of(text)));
    let mut loops = Loops::new(&dir, &batch);
    forward(&network, &mut loops).unwrap_or_else(|never| match never {});
    loops
}

#[test]
fn the_steps_are_the_network() {
    let model = TinyModel::new();
    let loops = run(&model, &TEXTS);
    for (text, got) in TEXTS.iter().zip(loops.result.chunks_exact(loops.hidden)) {
        let rows = reference(&model.tensors, &ids_of(text), |x| x.max(0.0));
        for (column, got) in got.iter().enumerate() {
            let want = rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
            assert!((f64::from(*got) - want).abs() < 2e-4, "{text:?}: {got}, not {want}");
        }
    }
}

#[test]
fn the_launches_do_not_depend_on_the_batch() {
    let model = TinyModel::new();
    for texts in [&TEXTS[..1], &TEXTS[..]] {
        assert_eq!(run(&model, texts).launches, launches(2));
    }
    assert_eq!(launches(6), 50);
}

#[test]
fn an_xlm_r_is_a_bert_whose_positions_begin_later() {
    let plain = run(&TinyModel::new(), &TEXTS).result;
    let moved = run(&TinyModel::new().into_xlm_roberta(1), &TEXTS).result;
    assert_eq!(moved, plain);
}
