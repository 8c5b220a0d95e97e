// Package gpt2 registers the tokenizer gpt2 of fspda/data/text: the byte-level BPE of GPT-2, with
// 50,257 tokens, of which 50,256 ends a text. Programs that name it import this package for its
// effect. It adds 2.4 MB to a program and about 8 processor seconds to its first build, so that it
// stands apart.
package gpt2
