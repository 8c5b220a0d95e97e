package web

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A budget spends what it has saved up, then its rate, whoever asks and for how much.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1)
		b.rate = 0.01
		begin := time.Now()
		asked := 0
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		done := make(chan int)
		for k := range 50 {
			go func() {
				n := 0
				for b.spend(ctx, time.Duration(k+1)*time.Millisecond) {
					n += k + 1
				}
				done <- n
			}()
		}
		for range 50 {
			asked += <-done
		}
		// A tenth of a second was saved up, a second came in; the last one may leave a debt.
		if spent := time.Duration(asked) * time.Millisecond; spent < 1050*time.Millisecond ||
			spent > 1150*time.Millisecond {
			t.Errorf("%v were spent in %v", spent, time.Since(begin))
		}
		time.Sleep(time.Hour)
		if b.debt(time.Now()) > 0 || b.left != savedUp {
			t.Errorf("after an hour %v are left, want %v", b.left, savedUp)
		}
	})
}

// Who leaves is not waited for, and nothing was done for them.
func TestBudgetLetsGo(t *testing.T) {
	b := newBudget(1)
	b.rate = 1e-6
	b.charge(time.Hour, time.Now())
	ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	if b.do(ctx, 0, func() { t.Error("it was done in debt") }) {
		t.Error("it says that it was done")
	}
	ran := false
	if free := newBudget(0); !free.do(ctx, time.Hour, func() { ran = true }) || !ran {
		t.Error("a budget without limit refused")
	}
}
