package bench

import _ "embed"

// CardPeer is the text of peers/card.py, which measures PyTorch on a GPU. It is embedded so that
// the program can be copied as one file.
//
//go:embed peers/card.py
var CardPeer string
