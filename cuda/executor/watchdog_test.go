package executor

import (
	"strings"
	"testing"
	"time"

	"fspda/internal/testing/fakegpu"
)

// onFake returns an executor on a fake GPU without kernels.
func onFake(t *testing.T, o fakegpu.Options) *Executor {
	t.Helper()
	ex := New(fakegpu.New(o).API(), false)
	err := ex.Start(func() error {
		for _, open := range []func() error{
			func() error { return ex.FindGPU(0) }, func() error { return ex.EnterContext(0) }, ex.CreateStreams,
		} {
			if err := open(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ex
}

// hanging is a Collector after a launch that may not end.
type hanging struct{ separateLaunches }

func (hanging) MayHang() bool { return true }

// A launch that does not end is reported, and closing the executor does not wait for it.
func TestHungLaunch(t *testing.T) {
	ex := onFake(t, fakegpu.Options{EventDelay: time.Hour})
	err := ex.Do(func() error { return ex.SyncWithin(time.Millisecond) })
	if err == nil || !strings.Contains(err.Error(), SeparateLaunchesVariable) {
		t.Errorf("%v, want an error that names %s", err, SeparateLaunchesVariable)
	}
	if err := ex.Stop(func() error { return ex.Shutdown() }); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// Work behind a launch that does not end, after those that ended, fails within the limit: callers
// go on with the error, and closing does not wait.
func TestHungLaunchLater(t *testing.T) {
	ex := onFake(t, fakegpu.Options{EventDelay: time.Hour})
	ex.watch.limit = 20 * time.Millisecond
	if err := ex.Do(func() error { ex.Collector = hanging{}; return nil }); err != nil {
		t.Fatal(err)
	}
	completed := make(chan bool)
	ex.EnqueueOp(&Op{Send: func() error { return nil }, Then: func() { close(completed) }})
	<-completed
	if err := ex.Err(); err == nil || !strings.Contains(err.Error(), SeparateLaunchesVariable) {
		t.Errorf("%v, want an error that names %s", err, SeparateLaunchesVariable)
	}
	if err := ex.Stop(func() error { return ex.Shutdown() }); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// Waiting for all of the GPU's work ends too if a launch does not end.
func TestSynchronizeHungLaunch(t *testing.T) {
	ex := onFake(t, fakegpu.Options{EventDelay: time.Hour})
	ex.watch.limit = 20 * time.Millisecond
	err := ex.Do(func() error {
		ex.Collector = hanging{}
		return ex.Synchronize()
	})
	if err == nil || !strings.Contains(err.Error(), SeparateLaunchesVariable) {
		t.Errorf("%v, want an error that names %s", err, SeparateLaunchesVariable)
	}
	if err := ex.Stop(func() error { return ex.Shutdown() }); err != nil {
		t.Errorf("closing: %v", err)
	}
}
