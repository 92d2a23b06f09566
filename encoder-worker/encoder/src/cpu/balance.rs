//! Shifts and scales of layer norms, moved into the products that follow.
//!
//! A few channels of these models are far larger than all others. With few bits, they would take the precision of the
//! rest. With `n` the normalised row, the product after a layer norm is `W (gamma n + beta) + bias = (W s) (gamma / s
//! n) + (W beta + bias)` for any `s` by channel. Here `s` is the root of the channel's reach divided by the largest of
//! its weights, so that both are equally far from 1. After Xiao et al., SmoothQuant, 2023.
//!
//! The reach of a channel is measured when a model is loaded, on tokens drawn from its vocabulary. On the golden texts
//! this gave the same results as real texts, and it works for any new model.

use pulp::Arch;

use super::attention::Attention;
use super::elementwise::Norm;
use super::f32::F32;
use super::forward::{Network, OwnScratch, Pass, Workspace};
use super::linear::Dense;
use super::model::{Embeddings, Model};
use super::pool::Ending;
use super::team::Member;
use super::vectors::Vectors;
use crate::model_dir::{Activation, Pooling};

/// Number of texts that are drawn, and tokens of each. More of either changed nothing.
const TEXTS: usize = 4;
const TOKENS: usize = 32;

/// Value below which a magnitude is taken for zero.
const LEAST: f32 = 1e-6;

/// Largest magnitude of each input of a layer's products.
pub(super) struct Reach {
    pub(super) qkv: Vec<f32>,
    pub(super) up: Vec<f32>,
}

/// Moves a layer norm's shift into the product that follows it. If the reach of its inputs is known, also shares the
/// norm's scale with the product.
pub(super) fn balance(norm: &mut Norm, dense: &mut Dense, reach: Option<&[f32]>) {
    for (weights, bias) in dense.weights.chunks_exact(dense.inputs).zip(&mut dense.bias) {
        *bias += weights.iter().zip(&norm.beta).map(|(w, beta)| w * beta).sum::<f32>();
    }
    let Some(reach) = reach else { return };
    let mut largest = vec![LEAST; dense.inputs];
    for weights in dense.weights.chunks_exact(dense.inputs) {
        largest.iter_mut().zip(weights).for_each(|(most, w)| *most = most.max(w.abs()));
    }
    let reach = reach.iter().map(|reach| reach.max(LEAST));
    let scales: Vec<f32> = reach.zip(&largest).map(|(reach, w)| (reach / w).sqrt()).collect();
    for weights in dense.weights.chunks_exact_mut(dense.inputs) {
        weights.iter_mut().zip(&scales).for_each(|(w, scale)| *w *= scale);
    }
    norm.next.iter_mut().zip(&scales).for_each(|(factor, scale)| *factor /= scale);
}

/// Measures each layer of `model`, whose products are not balanced, and returns its embeddings.
pub(super) fn measure(
    model: Model<Vectors<F32>>,
    arch: Arch,
    activation: Activation,
) -> (Vec<Reach>, Embeddings) {
    let kernel = Vectors::<F32>::new(arch);
    let ending = Ending { pooling: Pooling::Mean, normalise: false };
    let attention = Attention::F32(arch);
    let network = Network { model, kernel, arch, attention, activation, ending };
    let (words, positions) = network.model.embeddings.counts();
    let texts = draw(words, positions);
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let bounds: Vec<usize> = (0..=texts.len()).map(|text| text * texts[0].len()).collect();
    let tokens = bounds[texts.len()];
    let mut workspace = Workspace::default();
    workspace.grow(&network, texts.len(), tokens);
    let workspace = &workspace;
    let member = &Member::alone();
    let pass = Pass { network: &network, texts: &texts, bounds: &bounds, workspace, member };
    let mut own = OwnScratch::default();
    pass.embed_tokens(0..tokens, &mut own);
    let layers = network.model.layers.iter().enumerate();
    let reaches = layers.map(|(index, layer)| {
        let qkv = reach(own.kept_hidden.read(tokens, &layer.qkv).values, layer.qkv.inputs());
        pass.project(index, 0..tokens, &mut own);
        pass.attend(index, 0..tokens, &mut own);
        pass.add_norm(&layer.attention_norm, 0..tokens, &mut own);
        let up = reach(own.kept_hidden.read(tokens, &layer.up).values, layer.up.inputs());
        pass.widen(index, 0..tokens, &mut own);
        pass.add_norm(&layer.down_norm, 0..tokens, &mut own);
        Reach { qkv, up }
    });
    (reaches.collect(), network.model.embeddings)
}

fn reach(rows: &[f32], width: usize) -> Vec<f32> {
    let mut most = vec![0.0_f32; width];
    for row in rows.chunks_exact(width) {
        most.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(x.abs()));
    }
    most
}

/// Draws the same tokens every time, with a linear congruential generator (Knuth's MMIX).
fn draw(words: usize, positions: usize) -> Vec<Vec<u32>> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % words as u64) as u32
    };
    (0..TEXTS).map(|_| (0..TOKENS.min(positions)).map(|_| next()).collect()).collect()
}
