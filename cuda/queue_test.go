package cuda

import (
	"sync"
	"testing"
	"testing/synctest"
)

// Items of each sender come in the order in which it sent them, however many senders there are and
// however full the queue is; after the close nothing more comes in.
func TestQueue(t *testing.T) {
	const senders, each = 5, 3 * mostQueued
	q := newQueue()
	var sending sync.WaitGroup
	var got [senders][]int
	for s := range senders {
		sending.Go(func() {
			for n := range each {
				if !q.push(item{task: func() { got[s] = append(got[s], n) }}) {
					t.Error("an open queue takes nothing")
				}
			}
		})
	}
	go func() {
		sending.Wait()
		q.close()
	}()
	var items []item
	for q.wait() {
		for items = q.take(items); len(items) > 0; items = q.take(items) {
			if len(items) > mostQueued {
				t.Fatalf("%d items wait, want %d at most", len(items), mostQueued)
			}
			for _, it := range items {
				it.task()
			}
		}
	}
	for s := range got {
		if len(got[s]) != each {
			t.Errorf("%d items of sender %d came, want %d", len(got[s]), s, each)
		}
		for n, v := range got[s] {
			if n != v {
				t.Fatalf("item %d of sender %d comes as number %d", v, s, n)
			}
		}
	}
	if q.push(item{task: func() {}}) {
		t.Error("a closed queue takes items")
	}
}

// An operation that nobody waits for leaves the owner asleep, up to a number of them; a task wakes
// it.
func TestQueueWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.looks = 0
		awake := false
		sleep := func() {
			awake = false
			go func() { awake = q.wait() }()
			synctest.Wait()
		}
		sleep()
		for k := range mostWaiting {
			if awake {
				t.Fatalf("%d operations wake the owner, want %d", k, mostWaiting)
			}
			q.push(item{op: &op{}})
			synctest.Wait()
		}
		if !awake || len(q.take(nil)) != mostWaiting {
			t.Error("the owner sleeps on, or does not get all")
		}
		for _, it := range []item{{task: func() {}}, {op: &op{then: func() {}}}} {
			sleep()
			q.push(it)
			synctest.Wait()
			if !awake || len(q.take(nil)) != 1 {
				t.Error("what somebody waits for does not wake the owner")
			}
		}
	})
}
