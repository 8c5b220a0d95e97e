package simnet

import "fspda/internal/rng"

// eventQueue orders the agents by the end of their running gradients; of two that end at the same
// time the smaller number comes first. It is a binary heap that knows the position of each agent.
type eventQueue struct {
	at       []float64 // by agent: end of its gradient
	streams  []rng.Stream
	heap     []int // agents
	position []int // by agent: index in heap
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

func (q *eventQueue) before(a, b int) bool {
	return q.at[a] < q.at[b] || q.at[a] == q.at[b] && a < b
}

// set changes the end of agent i's gradient.
func (q *eventQueue) set(i int, at float64) {
	q.at[i] = at
	k := q.position[i]
	for k > 0 && q.before(q.heap[k], q.heap[(k-1)/2]) {
		q.swap(k, (k-1)/2)
		k = (k - 1) / 2
	}
	for {
		least := k
		for c := 2*k + 1; c <= 2*k+2 && c < len(q.heap); c++ {
			if q.before(q.heap[c], q.heap[least]) {
				least = c
			}
		}
		if least == k {
			return
		}
		q.swap(k, least)
		k = least
	}
}

func (q *eventQueue) swap(a, b int) {
	q.heap[a], q.heap[b] = q.heap[b], q.heap[a]
	q.position[q.heap[a]], q.position[q.heap[b]] = a, b
}
