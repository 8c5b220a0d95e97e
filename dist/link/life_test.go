package link

import (
	"errors"
	"testing"
)

// A process of an agent that has left is refused, and told which agent its slot may have. That one
// begins with streams of its own, and nothing of before is sent to it.
func TestLives(t *testing.T) {
	m := openMesh(t, 2, nil)
	swap(t, m, 5, 0, 10)
	ctx := testContext(t)
	m[1].Retire(0, 1)
	if err := send(ctx, m[1], 0, 10, ramp(0, 10, 5)); err != nil || m[1].peers[0].logLength() > 0 {
		t.Errorf("a message to an agent that has left: error %v, %d messages are kept", err, m[1].peers[0].logLength())
	}
	_, err := receive(ctx, m[0], 1, 10)
	if late, ok := errors.AsType[*LifeError](err); !ok || late.Life != 1 {
		t.Errorf("the agent that has left got %v, want an error that names life 1", err)
	}
	restart(t, m, func(o *settings) { o.Life = 1 })
	if err := m[0].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := m[0].Ready(ctx); err != nil {
		t.Fatal(err)
	}
	m[1].Admit(0, 1, 20)
	if err := send(ctx, m[1], 0, 19, ramp(0, 19, 5)); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 20, 30)
}

// The process of a later life shows that the earlier one has left.
func TestLaterLifeIsBelieved(t *testing.T) {
	m := openMesh(t, 2, nil)
	swap(t, m, 5, 0, 10)
	restart(t, m, func(o *settings) { o.Life = 2 })
	if err := m[0].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := m[0].Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	m[1].Admit(0, 2, 10)
	swap(t, m, 5, 10, 20)
}
