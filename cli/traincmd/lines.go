package traincmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// lineEncoder writes an entry as a line of text: time, level, message, and its fields as words.
type lineEncoder struct {
	*zapcore.MapObjectEncoder // the fields of With
	line                      zapcore.Encoder
}

func newLineEncoder() zapcore.Encoder {
	c := zapcore.EncoderConfig{TimeKey: "T", LevelKey: "L", MessageKey: "M", LineEnding: zapcore.DefaultLineEnding,
		EncodeTime: zapcore.TimeEncoderOfLayout("15:04:05"), EncodeLevel: zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder, ConsoleSeparator: " "}
	return &lineEncoder{zapcore.NewMapObjectEncoder(), zapcore.NewConsoleEncoder(c)}
}

// Clone returns a copy to which With adds fields.
func (e *lineEncoder) Clone() zapcore.Encoder {
	own := zapcore.NewMapObjectEncoder()
	maps.Copy(own.Fields, e.Fields)
	return &lineEncoder{own, e.line}
}

// EncodeEntry writes "message: key value, key value".
func (e *lineEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
		words = append(words, fieldWords(key, e.Fields[key]))
	}
	for _, f := range fields {
		one := zapcore.NewMapObjectEncoder()
		f.AddTo(one)
		for key, value := range one.Fields {
			words = append(words, fieldWords(key, value))
		}
	}
	if len(words) > 0 {
		entry.Message += ": " + strings.Join(words, ", ")
	}
	return e.line.EncodeEntry(entry, nil)
}

// fieldWords writes a field as words; a list of texts is its own name.
func fieldWords(key string, value any) string {
	if list, ok := value.([]any); ok {
		var parts []string
		for _, v := range list {
			parts = append(parts, fmt.Sprint(v))
		}
		return strings.Join(parts, "; ")
	}
	return strings.ReplaceAll(key, "_", " ") + " " + fmt.Sprint(value)
}
