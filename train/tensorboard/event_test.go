package tensorboard

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// event is an Event as a reader of protobuf sees it.
type event struct {
	wall    float64
	step    int64
	version string
	tag     string
	value   float32
	scalar  bool
	restart bool
}

// each calls field for the fields of a message.
func each(b []byte, field func(n protowire.Number, t protowire.Type, v uint64, raw []byte)) error {
	for len(b) > 0 {
		n, t, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var v uint64
		var v32 uint32
		var raw []byte
		switch t {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			v32, size = protowire.ConsumeFixed32(b)
			v = uint64(v32)
		case protowire.BytesType:
			raw, size = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("wire type %d", t)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		field(n, t, v, raw)
	}
	return nil
}

func parse(t testing.TB, b []byte) (e event) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(each(b, func(n protowire.Number, _ protowire.Type, v uint64, raw []byte) {
		switch n {
		case 1:
			e.wall = math.Float64frombits(v)
		case 2:
			e.step = int64(v)
		case 3:
			e.version = string(raw)
		case 5:
			must(each(raw, func(_ protowire.Number, _ protowire.Type, _ uint64, raw []byte) {
				e.scalar = true
				must(each(raw, func(n protowire.Number, _ protowire.Type, v uint64, raw []byte) {
					if n == 1 {
						e.tag = string(raw)
					} else {
						e.value = math.Float32frombits(uint32(v))
					}
				}))
			}))
		case 7:
			must(each(raw, func(n protowire.Number, _ protowire.Type, v uint64, _ []byte) {
				e.restart = n == 1 && v == 1
			}))
		}
	}))
	return e
}

func TestEvents(t *testing.T) {
	long := string(bytes.Repeat([]byte("long/"), 60))
	for _, c := range []struct {
		bytes []byte
		want  event
	}{
		{appendVersion(nil, 1.5), event{wall: 1.5, version: "brain.Event:2"}},
		{appendScalar(nil, 2.5, 300, "loss/worst", 0.25), event{wall: 2.5, step: 300, tag: "loss/worst", value: 0.25,
			scalar: true}},
		{appendScalar(nil, 0, 0, "t", 0), event{tag: "t", scalar: true}},
		{appendScalar(nil, 1, 1<<40, long, 1e30), event{wall: 1, step: 1 << 40, tag: long, value: 1e30, scalar: true}},
		{appendScalar(nil, 1, -1, "neg", -1), event{wall: 1, step: -1, tag: "neg", value: -1, scalar: true}},
		{appendRestart(nil, 3, 200), event{wall: 3, step: 200, restart: true}},
	} {
		if got := parse(t, c.bytes); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

// The bytes that protobuf's Python runtime gives for Event(wall_time=2.5, step=300,
// summary=Summary(value=[Summary.Value( tag="loss", simple_value=0.25)])).SerializeToString(), with
// the messages of TensorBoard 2.21.
func TestEventGolden(t *testing.T) {
	const want = "09000000000000044010ac022a0d0a0b0a046c6f7373150000803e"
	if got := hex.EncodeToString(appendScalar(nil, 2.5, 300, "loss", 0.25)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
