package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// maxCounters is the longest encoding of counters that is accepted, in bytes.
const maxCounters = 64 << 10

// Encode returns vectors and counters as bytes: the length of the counters as uint32, the counters
// in JSON, and all vectors as float32, each little-endian. It fails if the device has failed.
func (sn *Snapshot) Encode() ([]byte, error) {
	text, err := json.Marshal(sn.Counters)
	if err != nil {
		return nil, err
	}
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
	for _, v := range sn.Vectors() {
		host := make([]float32, v.Len())
		sn.Device.Read(host, v)
		for _, x := range host {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b, sn.DeviceErr()
}

// Decode fills a snapshot of the same lengths from what Encode returned.
func (sn *Snapshot) Decode(b []byte) error {
	want := 0
	for _, v := range sn.Vectors() {
		want += 4 * v.Len()
	}
	if len(b) < 4 {
		return fmt.Errorf("a snapshot of %d bytes is too short", len(b))
	}
	size := binary.LittleEndian.Uint32(b)
	if size > maxCounters || uint64(len(b)) != 4+uint64(size)+uint64(want) {
		return fmt.Errorf("a snapshot of %d bytes with %d of counters; expected %d bytes of vectors", len(b), size,
			want)
	}
	var c Counters
	if err := json.Unmarshal(b[4:4+size], &c); err != nil {
		return fmt.Errorf("the counters of a snapshot cannot be read: %w", err)
	}
	sn.Counters = c
	b = b[4+size:]
	for _, v := range sn.Vectors() {
		host := make([]float32, v.Len())
		for i := range host {
			host[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		b = b[4*len(host):]
		sn.Device.Write(v, host)
	}
	return nil
}
