//! Tests of the rule and of the shipped file.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const FILE: &str = include_str!("../../../courtesies/phrases.txt");

#[test]
fn thanks_greetings_and_goodbyes_need_no_tool_in_ten_languages() {
    for message in [
        "thanks!",
        "Thank you so much",
        "ok great, thanks. Bye 👋",
        "Thanks, that's all for today.",
        "That’s all, thank you!",
        "good morning",
        "super, dank dir",
        "Merci beaucoup, à demain !",
        "¡Muchas gracias! Hasta luego",
        "valeu, até amanhã",
        "perfetto, grazie mille",
        "Большое спасибо, до завтра!",
        "好的，谢谢你！",
        "ありがとうございました！",
        "了解です、ありがとう。",
        "شكراً جزيلاً، مع السلامة",
    ] {
        assert!(is_courtesy(message, "The task is yours."), "{message}");
        assert!(is_courtesy(message, ""), "{message}, as the first message");
    }
}

#[test]
fn any_other_word_and_any_question_keeps_the_tools() {
    for message in [
        "thanks, now close it",
        "thanks, the other one too",
        "thanks 2",
        "thanks? and the rest",
        "thank you for closing the ticket",
        "bye bug 12",
        "good night. restart it",
        "gracias, borra el segundo",
        "谢谢，再发一次",
        "ありがとう、もう一度",
        "hello world",
        "thanks thanks thanks thanks thanks thanks thanks",
        "",
        "👍",
    ] {
        assert!(!is_courtesy(message, "Done."), "{message}");
    }
}

#[test]
fn assent_alone_may_mean_go_on() {
    for message in
        ["yes", "ok", "perfect", "sure, great", "ja genau", "はい", "好的", "yes please", "do it"]
    {
        assert!(!is_courtesy(message, "The draft is ready."), "{message}");
        assert!(!is_courtesy(message, ""), "{message}");
    }
}

#[test]
fn after_a_question_or_an_offer_thanks_may_be_assent() {
    for answer in [
        "Shall I post it in #ops?",
        "It is ready. Let me know and I post it.",
        "I can restart it for you.",
        "Soll ich es löschen",
        "¿Lo borro? Dime.",
        "需要我发送吗？",
        "送信しましょうか。",
        "هل أرسلها؟",
    ] {
        assert!(!is_courtesy("ok, thanks", answer), "{answer}");
        assert!(!is_courtesy("thanks", answer), "{answer}");
    }
    assert!(is_courtesy("ok, thanks", "I posted it in #ops."));
}

#[test]
fn the_shipped_file_is_read_whole() {
    let mut languages: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let lines = FILE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (head, listed) = line.split_once(": ").expect("a kind, a language and phrases");
        let (kind, language) = head.split_once(' ').expect("a kind and a language");
        languages.entry(language).or_default().insert(kind);
        for phrase in listed.split(',') {
            assert!(!words(phrase).is_empty(), "an empty phrase in {line}");
            assert!(is_short(&words(phrase)), "too long to be met: {phrase}");
        }
    }
    assert_eq!(languages.len(), 10, "{languages:?}");
    let all: BTreeSet<&str> = ["assent", "courtesy", "offer"].into();
    assert!(languages.values().all(|kinds| *kinds == all), "{languages:?}");
    let acts = ["please", "go ahead", "do it", "next", "continue", "stop", "more", "undo", "retry"];
    assert!(acts.iter().all(|phrase| !SHIPPED.of_messages.contains_key(*phrase)));
}
