// Package text turns text into streams of tokens for language models, and back.
//
// A [Tokenizer] maps text to tokens: char, byte, or gpt2, which the package fspda/data/text/gpt2
// registers. [Open] opens a [Corpus], the training and validation streams of a folder: .bin files of
// nanoGPT or llm.c, which are mapped into memory and never copied, or .txt files, which it
// tokenizes. [Prepare] writes the .bin files that nanoGPT reads. [Synthetic] draws a text whose
// entropy is known, so that a model's loss has an exact lower limit.
//
// [Corpus.Documents] divides the training stream into documents with classes: files, or the
// speeches of a play with their speakers. Agents can then hold different documents.
//
// Files are untrusted: an odd size, a wrong header, a token outside of the vocabulary or an unknown
// character is a [FormatError] or a [CharError] that says where. A Corpus must be closed; its
// streams are read-only and invalid afterwards. Everything else is safe for concurrent use.
package text
