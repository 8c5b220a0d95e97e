package runfolder

import (
	"encoding/json"
	"fmt"
	"hash/crc32"

	"fspda/train/metric"
)

// A line of metrics.jsonl is a row as a JSON object. Its last field is the CRC-32C of the object
// without this field. Lines of versions before 0.2.0 have none.
const (
	checksumForm   = `,"checksum":"%08x"}`
	checksumLength = len(`,"checksum":"00000000"}`)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func rowLine(r metric.Row) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	line := fmt.Appendf(text[:len(text)-1:len(text)-1], checksumForm, crc32.Checksum(text, castagnoli))
	return append(line, '\n'), nil
}

func readRow(line []byte) (r metric.Row, err error) {
	if at := len(line) - checksumLength; at > 0 {
		var said uint32
		if n, _ := fmt.Sscanf(string(line[at:]), checksumForm, &said); n == 1 {
			text := append(line[:at:at], '}')
			if found := crc32.Checksum(text, castagnoli); found != said {
				return r, fmt.Errorf("its checksum is %08x, and its text has %08x: the file was changed", said, found)
			}
		}
	}
	return r, json.Unmarshal(line, &r)
}
