package compiler

import (
	"cmp"
	"slices"

	"fspda/device"
	"fspda/device/plan"
)

// The logits of a large vocabulary are the largest matrix of a gradient, and only the loss and three
// products read or write them. Where they take more than lossPieceBytes, one task computes all four,
// for pieces of the rows: logits, their loss and gradient, the gradient of the product's input, and a
// summand of the gradient of its weights. The logits of a piece take the memory of those before it.

// lossPieceBytes is the most memory of the logits of a piece, in bytes, unless Options say another.
// The logits of GPT-2 for 16 windows of 1,024 tokens are one piece: with two, a gradient on an H200
// was 3 % slower.
const lossPieceBytes = 2 << 30

// lossPieceRows divides the rows of a larger piece, so that tiles of products have no rows outside of it.
const lossPieceRows = 256

// LossPieces is set for a task that computes a loss with the products around it, Rows rows at a
// time. In of the task are the product's input and its weights, and the labels; Out the loss, the
// gradients of the product's input and of its weights, and the logits of a piece.
type LossPieces struct{ Rows int }

// pieceOf returns the rows of a piece of m rows, of which each has rowBytes, and a piece most bytes.
func pieceOf(m, rowBytes, most int) int {
	pieces := (m*rowBytes + most - 1) / most
	rows := (m + pieces - 1) / pieces
	if rows > lossPieceRows {
		rows = min(m, plan.Align(rows, lossPieceRows))
	}
	return rows
}

// splitLosses joins each loss with large logits and the products around it, if their tasks follow
// each other.
func (p *planner) splitLosses() {
	for i := 1; i+2 < len(p.tasks); i++ {
		loss := &p.tasks[i]
		if loss.Work != Compute || loss.Call.Kernel != device.SoftmaxCrossEntropy || loss.Vocabulary == 0 {
			continue
		}
		m := loss.Call.Dims[0]
		rows := pieceOf(m, loss.Vocabulary*p.element.Size(), cmp.Or(p.lossPiece, lossPieceBytes))
		if joined, ok := p.joinLoss(p.tasks[i-1:i+3], rows); ok && rows < m {
			p.values[joined.Out[3].value].n = rows * loss.Vocabulary
			joined.Out[3].Len = rows * loss.Vocabulary
			p.values[loss.Out[1].value].inPlaceOf = -1 // it has no memory
			p.tasks = slices.Replace(p.tasks, i-1, i+3, joined)
		}
	}
}

// joinLoss returns the task of a product, its loss and the two products of the gradient. ok is false
// where the tasks are others.
func (p *planner) joinLoss(tasks []Task, rows int) (t Task, ok bool) {
	product, loss := &tasks[0], &tasks[1]
	back := map[device.Kernel]*Task{}
	for i := range tasks {
		if tasks[i].Work != Compute || tasks[i].Vocabulary != loss.Vocabulary {
			return t, false
		}
		back[tasks[i].Call.Kernel] = &tasks[i]
	}
	x, w := back[device.LinearGradX], back[device.ProductGradW]
	if product.Call.Kernel != device.Product || x == nil || w == nil || w.In[0] != product.In[0] ||
		x.In[1] != product.In[1] || loss.In[0] != product.Out[0] || x.In[0] != loss.Out[1] || w.In[1] != loss.Out[1] {
		return t, false
	}
	t = *loss
	t.In = []Operand{product.In[0], product.In[1], loss.In[1]}
	t.Out = []Operand{loss.Out[0], x.Out[0], w.Out[0], product.Out[0]}
	t.Pieces = &LossPieces{Rows: rows}
	return t, true
}
