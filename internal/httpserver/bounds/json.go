package bounds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// The limits of a JSON text.
const (
	// MaxTokens limits the number of values and field names. The largest legitimate requests, orders with many components for the
	// Provisioner, have about 5,000.
	MaxTokens = 10_000
	// MaxDepth limits the nesting of objects and arrays.
	MaxDepth = 32
	// MaxFieldName limits the length of a field name, in bytes.
	MaxFieldName = 256
	// MaxNumber limits the length of a number, in bytes. MaxExponent limits the absolute value of its exponent to the largest
	// exponent of a 64-bit float. Exact arithmetic on a number such as 1e999000 takes seconds.
	MaxNumber   = 64
	MaxExponent = 308

	// maxQuoted limits the length of a field name in an error, in characters.
	maxQuoted = 50
	// fewFields is the maximum number of fields that are searched linearly for duplicates. Larger objects use a map.
	fewFields = 16
)

// JSON returns an error of kind Invalid if the text exceeds a limit or repeats a field within an object. The error reads as a
// sentence that starts with noun, such as "The body". JSON takes linear time, allocates only for field names and nesting, and
// stops at the first violation. It does not check the syntax: decoders reject input that is not JSON.
func JSON(noun string, text []byte) error {
	meter := meter{text: text}
	if problem := meter.run(); problem != "" {
		return failure.New(failure.Invalid, "%s %s", noun, problem)
	}

	return nil
}

// Tokens returns the number of values and field names in the text, up to the first violation. It is at most MaxTokens+1.
func Tokens(text []byte) int {
	meter := meter{text: text}
	_ = meter.run() // the count is valid up to the first violation

	return meter.tokens
}

// meter scans a JSON text, counts the values and field names, and checks the limits. Its methods describe a violation in the same
// form as run.
type meter struct {
	text   []byte
	at     int
	tokens int
	// nesting contains the open objects and arrays, the outermost first.
	nesting []container
}

// container is an open object or array.
type container struct {
	object bool
	// few contains the field names if there are at most fewFields. Otherwise, names contains all of them.
	few   []string
	names map[string]struct{}
}

// run reads the text up to its end or the first violation. It returns the violation as a predicate, such as "has more than 10000
// values", or an empty string if the text is within the limits.
func (m *meter) run() string {
	for m.at < len(m.text) {
		problem := ""

		switch char := m.text[m.at]; {
		case char == ' ' || char == '\t' || char == '\n' || char == '\r' || char == ',' || char == ':':
			m.at++

			continue
		case char == '}' || char == ']':
			m.at++
			m.nesting = m.nesting[:max(0, len(m.nesting)-1)]

			continue
		case char == '{' || char == '[':
			m.at++
			problem = m.open(char == '{')
		case char == '"':
			problem = m.string()
		case char == '-' || '0' <= char && char <= '9':
			problem = m.number()
		default:
			m.word()
		}

		if m.tokens++; problem == "" && m.tokens > MaxTokens {
			problem = fmt.Sprintf("has more than %d values", MaxTokens)
		}

		if problem != "" {
			return problem
		}
	}

	return ""
}

// open enters an object or an array.
func (m *meter) open(object bool) string {
	if len(m.nesting) == MaxDepth {
		return fmt.Sprintf("nests objects and arrays more than %d levels deep", MaxDepth)
	}

	m.nesting = append(m.nesting, container{object: object})

	return ""
}

// string reads a string. If a colon follows, it adds the string to the current object as a field name.
func (m *meter) string() string {
	start := m.at
	m.at++

	for m.at < len(m.text) && m.text[m.at] != '"' {
		if m.text[m.at] == '\\' {
			m.at++
		}

		m.at++
	}

	m.at = min(m.at+1, len(m.text))
	literal := m.text[start:m.at]

	next := m.at
	for next < len(m.text) && strings.IndexByte(" \t\n\r", m.text[next]) >= 0 {
		next++
	}

	if next == len(m.text) || m.text[next] != ':' || len(m.nesting) == 0 {
		return ""
	}

	m.at = next

	return m.field(literal)
}

// field adds a field name, given as a quoted JSON string, to the innermost object.
func (m *meter) field(literal []byte) string {
	if len(literal) > MaxFieldName+len(`""`) {
		return fmt.Sprintf("has a field whose name is longer than %d bytes", MaxFieldName)
	}

	var name string
	if bytes.IndexByte(literal, '\\') < 0 && len(literal) > 1 {
		name = string(literal[1 : len(literal)-1])
	} else if json.Unmarshal(literal, &name) != nil {
		return "" // not JSON
	}

	if !m.nesting[len(m.nesting)-1].add(name) {
		return fmt.Sprintf("has the field %s more than once", strconv.Quote(failure.Shorten(name, maxQuoted)))
	}

	return ""
}

// add adds a field name. It returns false if the object already has a field with this name.
func (c *container) add(name string) bool {
	if c.names == nil {
		if slices.Contains(c.few, name) {
			return false
		}

		if len(c.few) < fewFields {
			c.few = append(c.few, name)

			return true
		}

		c.names = make(map[string]struct{}, 2*fewFields) //nolint:mnd // grows with the object

		for _, other := range c.few {
			c.names[other] = struct{}{}
		}
	}

	_, known := c.names[name]
	c.names[name] = struct{}{}

	return !known
}

// number reads a number and checks its length and exponent.
func (m *meter) number() string {
	start, exponent := m.at, -1

	for m.at < len(m.text) && strings.IndexByte("0123456789+-.eE", m.text[m.at]) >= 0 {
		if m.text[m.at] == 'e' || m.text[m.at] == 'E' {
			exponent = m.at + 1
		}

		m.at++
	}

	if m.at-start > MaxNumber {
		return fmt.Sprintf("has a number longer than %d characters", MaxNumber)
	}

	if exponent < 0 {
		return ""
	}

	// Atoi fails if the exponent overflows an int, or if the text is not JSON. Ignore an empty exponent, because decoders reject
	// it.
	value, err := strconv.Atoi(string(m.text[exponent:m.at]))
	if err != nil && exponent < m.at || value > MaxExponent || value < -MaxExponent {
		return fmt.Sprintf("has a number with an exponent beyond %d", MaxExponent)
	}

	return ""
}

// word reads true, false or null. It also skips characters that are not JSON, because decoders reject them.
func (m *meter) word() {
	m.at++

	for m.at < len(m.text) && 'a' <= m.text[m.at] && m.text[m.at] <= 'z' {
		m.at++
	}
}
