// Package tensorboard writes scalars to event files, which TensorBoard shows as curves during a
// run.
//
// An event file is a sequence of records. A record is framed as by TensorFlow's TFRecordWriter:
// length (8 bytes), masked CRC-32C of the length, payload, masked CRC-32C of the payload, all
// little-endian. The payload is a tensorflow.Event in the protobuf wire format
// (tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto); the first one
// names the file version.
//
// [Create] starts a new numbered file in the run's folder at each start, since TensorBoard reads
// all event files of a folder in the order of their names. A run that resumes from a checkpoint
// calls [Writer.Restart] with its iteration; TensorBoard then drops that iteration and later ones
// from older files.
//
// Duties of the caller: use by one goroutine at a time; [Writer.Flush] to make data visible to
// readers; [Writer.Close] at the end. The package has no clock: the caller passes wall times.
//
// Convention: wall is in seconds since 1970-01-01 UTC, step is the iteration. Values are stored as
// float32, the precision of TensorBoard; the exact numbers are in the run's metrics.jsonl.
//
// Where to look next: writer.go, event.go for the messages, record.go for the framing.
package tensorboard
