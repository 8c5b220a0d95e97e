package dist

import (
	"strings"
	"testing"

	"fspda/device/devicetest"
)

func TestCheckIteration(t *testing.T) {
	p := NewPool(devicetest.NewFloat64())
	m := Message{T: 5, From: 2, To: 3, Values: []*Buffer{p.Get(1), p.Get(2)}}
	if err := CheckIteration(m, 5); err != nil {
		t.Errorf("the expected iteration: %v", err)
	}
	a := m.Values[0]
	err := CheckIteration(m, 7)
	if err == nil || !strings.Contains(err.Error(),
		"agent 3 expects the message of iteration 7 from agent 2 and received that of iteration 5") {
		t.Errorf("another iteration: %v", err)
	}
	if p.Get(1) != a {
		t.Error("the refused message was not released")
	}
}
