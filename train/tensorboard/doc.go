// Package tensorboard writes scalars to event files, which TensorBoard and its relatives show as
// curves while a run goes on.
//
// An event file is a sequence of records. A record is framed as by TensorFlow's TFRecordWriter:
// length (8 bytes), masked CRC-32C of the length, payload, masked CRC-32C of the payload, all
// little-endian. The payload is a tensorflow.Event in the protobuf wire format
// (tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto); the first one
// names the file version.
//
// [Create] starts a new file in the folder of the run at each start, as TensorBoard expects: it
// reads all event files of a folder in the order of their names, and the names carry a growing
// number. A run that resumes from a checkpoint calls [Writer.Restart] with the iteration it goes
// back to; TensorBoard then forgets what older files say about that iteration and later ones.
//
// Duties of the caller: one goroutine at a time; [Writer.Flush] when a reader should see what was
// written; [Writer.Close] at the end. The package has no clock: the caller passes wall times.
//
// Convention: wall is in seconds since 1970-01-01 UTC, step is the iteration. Values travel as
// float32, which is what TensorBoard shows; the exact numbers are in the run's metrics.jsonl.
//
// Where to look next: writer.go, event.go for the messages, record.go for the framing.
package tensorboard
