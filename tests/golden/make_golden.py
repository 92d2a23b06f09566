#!/usr/bin/env python3
# ruff: noqa: E501, RUF001 -- the texts are data, odd letters included
"""Makes all-MiniLM-L6-v2.json: what sentence-transformers (fp32, CPU) says about varied texts.

    pip install sentence-transformers
    python make_golden.py MODEL_DIR
    python make_golden.py MODEL_DIR encoder-worker/adapters/tools-v1.safetensors

MODEL_DIR is a fetched model directory (`toolgate model fetch`). With an adapter, which is added to
the weights here, the file is all-MiniLM-L6-v2+tools-v1.json. Run again only when texts are added or
the adapter changes; the files are the reference that the Rust encoder is held against, so they are
never made by the encoder.
"""

import json
import pathlib
import sys

import torch
from safetensors import safe_open
from sentence_transformers import SentenceTransformer

DECIMALS = 6

TEXTS = {
    "empty": "",
    "blank": " \t\n ",
    "one letter": "a",
    "one word": "weather",
    "punctuation only": "?!... -- ;;",
    "short intent": "check my inbox",
    "short question": "What's the weather in Lisbon tomorrow?",
    "pangram": "The quick brown fox jumps over the lazy dog.",
    "tool summary": "Create issue: opens a new issue in a repository with a title, a body and labels.",
    "snake case": "list_pull_request_review_comments",
    "camel case": "getAllOpenPullRequestsForRepository",
    "kebab and dots": "k8s.apps/v1 rolling-update --max-surge=25%",
    "shouting": "DELETE EVERYTHING NOW",
    "accents": "Où est le café le plus proche de l'hôtel Étoile à Zürich?",
    "accents decomposed": "Ou\u0300 est le cafe\u0301",
    "german": "Bitte verschiebe das Meeting auf nächsten Dienstag um halb zehn.",
    "spanish": "¿Cuánto dinero gasté en restaurantes el mes pasado?",
    "russian": "Покажи все открытые задачи в этом проекте",
    "greek": "Καλημέρα, πού είναι ο σταθμός;",
    "arabic": "ابحث عن أقرب مطعم مفتوح الآن",
    "hebrew": "מה מזג האוויר היום?",
    "hindi": "कल सुबह सात बजे का अलार्म लगाओ",
    "thai": "สภาพอากาศวันนี้เป็นอย่างไร",
    "chinese": "帮我查一下明天北京到上海的机票",
    "japanese": "東京の明日の天気を教えてください。",
    "korean": "내일 오후 세 시에 회의를 잡아 주세요",
    "mixed scripts": "Send 你好 to Иван via Slack, s'il te plaît 🙏",
    "emoji": "🚀🔥 ship it 👩‍💻👍🏽",
    "emoji only": "🎉🎉🎉",
    "zero width and control": "zero\u200bwidth\u0000joiner\u200d and \ufeff bom",
    "replacement character": "broken \ufffd bytes",
    "special tokens as text": "[CLS] [SEP] [MASK] [PAD] [UNK]",
    "url": "https://example.org/a/b?c=d&e=%20f#g",
    "numbers": "3.14159 1,000,000 2026-01-31T23:59:59Z +44 20 7946 0018",
    "code": "def f(x: int) -> int:\n    return x ** 2 if x > 0 else -x  # squares\n",
    "sql": "SELECT u.id, COUNT(*) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY 1 HAVING COUNT(*) > 3;",
    "json": json.dumps(
        {
            "name": "create_event",
            "inputSchema": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "start": {"type": "string"}},
                "required": ["title"],
            },
        }
    ),
    "medium": (
        "I need to find every invoice from the last quarter that has not been paid yet, group them by "
        "customer, and send each customer a friendly reminder with the total amount and the due date."
    ),
    "one endless word": "antidisestablishmentarianism" * 12,
    "long, below the limit": "The gateway forwards the call to the upstream and waits. " * 20,
    "exactly at the limit": "word " * 254,
    "one over the limit": "word " * 255,
    "far over the limit": "Search the web for recent articles about renewable energy policy. " * 80,
    "over the limit, then another subject": "alpha beta gamma " * 120 + "delete the database",
}


def merge(model: SentenceTransformer, path: str) -> str:
    """Adds an adapter to the weights; its name."""
    with safe_open(path, "pt") as file:
        about = file.metadata()
        scale = float(about["alpha"]) / int(about["rank"])
        for key in file.keys():  # noqa: SIM118 -- no mapping
            if key.endswith(".lora_A.weight"):
                module = key.removesuffix(".lora_A.weight")
                down, up = file.get_tensor(key), file.get_tensor(f"{module}.lora_B.weight")
                weight = model[0].auto_model.get_submodule(module).weight
                weight.data += scale * up.float() @ down.float()
    return "+" + pathlib.Path(path).stem


def main() -> None:
    model = SentenceTransformer(sys.argv[1], device="cpu")
    model = model.float().eval()
    suffix = merge(model, sys.argv[2]) if len(sys.argv) > 2 else ""
    # The packaged tokenizer pads and cuts at 128; sentence-transformers sets its own limit.
    assert model.max_seq_length == 256, model.max_seq_length
    cases = []
    for name, text in TEXTS.items():
        full = len(model.tokenizer(text, truncation=False, padding=False)["input_ids"])
        used = min(full, model.max_seq_length)
        with torch.inference_mode():
            vector = model.encode([text], convert_to_numpy=True, normalize_embeddings=False)[0]
        cases.append(
            {
                "name": name,
                "text": text,
                "tokens": used,
                "truncated": full > model.max_seq_length,
                "embedding": [round(float(x), DECIMALS) for x in vector],
            }
        )
    place = pathlib.Path(__file__).parent / f"all-MiniLM-L6-v2{suffix}.json"
    lines = ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases)
    place.write_text("[\n" + lines + "\n]\n", encoding="utf-8")
    print(f"{len(cases)} texts, {place.stat().st_size} bytes")


if __name__ == "__main__":
    main()
