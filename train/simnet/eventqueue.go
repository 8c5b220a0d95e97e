package simnet

import (
	"container/heap"

	"fspda/internal/rng"
)

// eventQueue orders the agents by the end of their running gradients; of two that end at the same
// time the smaller number comes first. It is a binary heap that knows the position of each agent.
type eventQueue struct {
	at       []float64 // end of each agent's gradient
	streams  []rng.Stream
	heap     []int // agents
	position []int // index of each agent in heap
}

func newEventQueue(n int) eventQueue {
	q := eventQueue{at: make([]float64, n), streams: make([]rng.Stream, n), heap: make([]int, n),
		position: make([]int, n)}
	for i := range n {
		q.heap[i], q.position[i] = i, i
	}
	return q
}

func (q *eventQueue) first() int { return q.heap[0] }

// set changes the end of agent i's gradient.
func (q *eventQueue) set(i int, at float64) {
	q.at[i] = at
	heap.Fix(q, q.position[i])
}

// Len, Less, Swap, Push and Pop implement [heap.Interface]; the agents never change.
func (q *eventQueue) Len() int { return len(q.heap) }

func (q *eventQueue) Less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	return q.at[a] < q.at[b] || q.at[a] == q.at[b] && a < b
}

func (q *eventQueue) Swap(a, b int) {
	q.heap[a], q.heap[b] = q.heap[b], q.heap[a]
	q.position[q.heap[a]], q.position[q.heap[b]] = a, b
}

func (q *eventQueue) Push(any) {}
func (q *eventQueue) Pop() any { return nil }
