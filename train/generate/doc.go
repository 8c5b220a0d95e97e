// Package generate draws text from a language model, token by token.
//
// [Tokens] reads the logits of the next token, draws it ([Choice.Draw]) and continues with it. The
// draws are a function of the seed and the number of the sample.
package generate
