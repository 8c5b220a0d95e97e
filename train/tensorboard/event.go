package tensorboard

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of tensorflow.Event, .Summary, .Summary.Value and .SessionLog.
const (
	eventWallTime    = 1
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7

	summaryValue = 1

	valueTag    = 1
	valueSimple = 2

	sessionStatus = 1
	sessionStart  = 1 // SessionLog.START
)

// fileVersion is the first version whose readers support session logs.
const fileVersion = "brain.Event:2"

// appendEvent appends the common fields of events. Like protobuf it omits a step of 0, the default.
func appendEvent(dst []byte, wall float64, step int64) []byte {
	dst = protowire.AppendTag(dst, eventWallTime, protowire.Fixed64Type)
	dst = protowire.AppendFixed64(dst, math.Float64bits(wall))
	if step != 0 {
		dst = protowire.AppendTag(dst, eventStep, protowire.VarintType)
		dst = protowire.AppendVarint(dst, uint64(step))
	}
	return dst
}

// appendVersion appends the first event of a file.
func appendVersion(dst []byte, wall float64) []byte {
	dst = appendEvent(dst, wall, 0)
	dst = protowire.AppendTag(dst, eventFileVersion, protowire.BytesType)
	return protowire.AppendString(dst, fileVersion)
}

// appendScalar appends an event with one scalar.
func appendScalar(dst []byte, wall float64, step int64, tag string, value float32) []byte {
	dst = appendEvent(dst, wall, step)
	size := protowire.SizeTag(valueTag) + protowire.SizeBytes(len(tag)) + protowire.SizeTag(valueSimple) +
		protowire.SizeFixed32()
	dst = protowire.AppendTag(dst, eventSummary, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(protowire.SizeTag(summaryValue)+protowire.SizeBytes(size)))
	dst = protowire.AppendTag(dst, summaryValue, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(size))
	dst = protowire.AppendTag(dst, valueTag, protowire.BytesType)
	dst = protowire.AppendString(dst, tag)
	dst = protowire.AppendTag(dst, valueSimple, protowire.Fixed32Type)
	return protowire.AppendFixed32(dst, math.Float32bits(value))
}

// appendRestart appends the event that makes a reader drop all earlier events of step and later.
func appendRestart(dst []byte, wall float64, step int64) []byte {
	dst = appendEvent(dst, wall, step)
	dst = protowire.AppendTag(dst, eventSessionLog, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(protowire.SizeTag(sessionStatus)+protowire.SizeVarint(sessionStart)))
	dst = protowire.AppendTag(dst, sessionStatus, protowire.VarintType)
	return protowire.AppendVarint(dst, sessionStart)
}
