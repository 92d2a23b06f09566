//! Sentence encoder of Toolgate.
