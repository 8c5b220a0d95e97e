package bench

import _ "embed"

// CardPeer is peers/card.py, which measures PyTorch on a card: the program carries it, so that one
// copied file is enough.
//
//go:embed peers/card.py
var CardPeer string
