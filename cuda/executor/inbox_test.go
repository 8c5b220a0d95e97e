package executor

import (
	"sync"
	"testing"
	"testing/synctest"
)

// Items of each sender arrive in the order of sending, with many senders and a full inbox; after
// close none arrive.
func TestInbox(t *testing.T) {
	const senders, each = 5, 3 * maxQueued
	in := newInbox()
	var sending sync.WaitGroup
	var got [senders][]int
	for s := range senders {
		sending.Go(func() {
			for n := range each {
				if !in.push(item{task: func() { got[s] = append(got[s], n) }}) {
					t.Error("an open inbox refuses an item")
				}
			}
		})
	}
	go func() {
		sending.Wait()
		in.close()
	}()
	var items []item
	for in.wait() {
		for items = in.takeAll(items); len(items) > 0; items = in.takeAll(items) {
			if len(items) > maxQueued {
				t.Fatalf("%d items wait, want %d at most", len(items), maxQueued)
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
	if in.push(item{task: func() {}}) {
		t.Error("a closed inbox accepts an item")
	}
}

// An operation that nobody waits for leaves the executor asleep, up to maxDeferred of them; a task
// wakes it.
func TestInboxWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox()
		in.spins = 0
		awake := false
		sleep := func() {
			awake = false
			go func() { awake = in.wait() }()
			synctest.Wait()
		}
		sleep()
		for k := range maxDeferred {
			if awake {
				t.Fatalf("%d operations wake the executor, want %d", k, maxDeferred)
			}
			in.push(item{op: &Op{}})
			synctest.Wait()
		}
		if !awake || len(in.takeAll(nil)) != maxDeferred {
			t.Error("the executor sleeps on, or does not get all items")
		}
		for _, it := range []item{{task: func() {}}, {op: &Op{Then: func() {}}}} {
			sleep()
			in.push(it)
			synctest.Wait()
			if !awake || len(in.takeAll(nil)) != 1 {
				t.Error("an item that somebody waits for does not wake the executor")
			}
		}
	})
}
