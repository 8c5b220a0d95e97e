// Package bpe reads tokenizers of byte pairs as Hugging Face stores them: the file tokenizer.json
// of GPT-2, Llama 3, Qwen, SmolLM and others.
//
// [New] reads a file, [Tokenizer.Encode] makes tokens of text. Its tokens are the ones of the
// library tokenizers with add_special_tokens false and encode_special_tokens true: nothing is put
// before a text, and special tokens in it are plain text. What a file asks for and this package
// does not do is an error that names it.
//
// Where to look next: file.go for the file, merge.go for the byte pairs.
package bpe
