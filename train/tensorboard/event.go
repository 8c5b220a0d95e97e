package tensorboard

import (
	"fmt"
	"maps"
	"math"
	"slices"

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

	valueTag      = 1
	valueSimple   = 2
	valueMetadata = 9

	// SummaryMetadata and its PluginData
	metadataPlugin = 1
	pluginName     = 1
	pluginContent  = 2

	// HParamsPluginData, its SessionStartInfo, an entry of a map, and google.protobuf.Value
	hparamsSession = 3
	sessionHParams = 1
	sessionTime    = 5
	entryKey       = 1
	entryValue     = 2
	kindNumber     = 2
	kindString     = 3
	kindBool       = 4

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

func appendBytes(dst []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), v)
}

func appendDouble(dst []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, field, protowire.Fixed64Type), math.Float64bits(v))
}

// hyperparameters returns the event that starts a session of the plugin hparams, with values that
// are float64, bool or string.
func hyperparameters(wall float64, params map[string]any) []byte {
	var session []byte
	for _, name := range slices.Sorted(maps.Keys(params)) {
		var value []byte
		switch v := params[name].(type) {
		case float64:
			value = appendDouble(nil, kindNumber, v)
		case bool:
			value = protowire.AppendVarint(protowire.AppendTag(nil, kindBool, protowire.VarintType),
				protowire.EncodeBool(v))
		default:
			value = appendBytes(nil, kindString, fmt.Append(nil, v))
		}
		entry := appendBytes(appendBytes(nil, entryKey, []byte(name)), entryValue, value)
		session = appendBytes(session, sessionHParams, entry)
	}
	session = appendDouble(session, sessionTime, wall)
	plugin := appendBytes(appendBytes(nil, pluginName, []byte("hparams")), pluginContent,
		appendBytes(nil, hparamsSession, session))
	value := appendBytes(appendBytes(nil, valueTag, []byte("_hparams_/session_start_info")), valueMetadata,
		appendBytes(nil, metadataPlugin, plugin))
	return appendBytes(appendEvent(nil, wall, 0), eventSummary, appendBytes(nil, summaryValue, value))
}

// appendRestart appends the event that makes a reader drop all earlier events of step and later.
func appendRestart(dst []byte, wall float64, step int64) []byte {
	dst = appendEvent(dst, wall, step)
	dst = protowire.AppendTag(dst, eventSessionLog, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(protowire.SizeTag(sessionStatus)+protowire.SizeVarint(sessionStart)))
	dst = protowire.AppendTag(dst, sessionStatus, protowire.VarintType)
	return protowire.AppendVarint(dst, sessionStart)
}
