package web

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// A budget grants its burst and then its rate, however many clients ask and for how much.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1)
		b.limiter.SetLimit(rate.Limit(0.01 * float64(time.Second)))
		begin := time.Now()
		asked := 0
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		done := make(chan int)
		for k := range 50 {
			go func() {
				n := 0
				for b.wait(ctx, time.Duration(k+1)*time.Millisecond) {
					n += k + 1
				}
				done <- n
			}()
		}
		for range 50 {
			asked += <-done
		}
		// 0.1 s of burst and 1 s of income; the last client may leave a debt of up to 50 ms.
		if spent := time.Duration(asked) * time.Millisecond; spent < 1050*time.Millisecond ||
			spent > 1150*time.Millisecond {
			t.Errorf("%v of processor time were granted in %v, want 1.05 s to 1.15 s", spent, time.Since(begin))
		}
		time.Sleep(time.Hour)
		if left := b.limiter.Tokens(); left != float64(burst) {
			t.Errorf("after an hour the budget holds %v, want %v", time.Duration(left), burst)
		}
	})
}

// A client that disconnects while it waits leaves the queue, and its work is not done.
func TestBudgetCancelled(t *testing.T) {
	b := newBudget(1)
	b.charge(time.Second, time.Now())
	b.limiter.SetLimit(1)
	ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	if b.do(ctx, 0, func() { t.Error("work was done although processor time is unpaid") }) {
		t.Error("do returned true after its context ended, want false")
	}
	ran := false
	if free := newBudget(0); !free.do(ctx, time.Hour, func() { ran = true }) || !ran {
		t.Error("a budget without limit refused work")
	}
}
