package supportbundle

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// minSecret is the minimum length of a known secret that is masked wherever it occurs. Shorter ones would also mask parts of
// words.
const minSecret = 4

// Redactor masks secrets and replaces the names of people with pseudonyms. Call Learn for all documents before the first call of
// Value or Text, because a document may name people whom only another document identifies. A Redactor is not safe for concurrent
// use.
type Redactor struct {
	known   []string
	people  map[string]string
	counted map[string]int
	names   *strings.Replacer
	words   *regexp.Regexp
}

// NewRedactor returns a redactor. It masks known secrets of at least minSecret bytes everywhere, and other secrets that it recognizes by
// their form or the name of their field.
func NewRedactor(known ...string) *Redactor {
	known = slices.DeleteFunc(slices.Clone(known), func(text string) bool { return len(text) < minSecret })

	return &Redactor{known: known, people: map[string]string{}, counted: map[string]int{}}
}

// pseudonyms returns the prefix of the pseudonyms that replace the values of a field. It returns an empty string for fields that
// do not identify people.
func pseudonyms(key string) string {
	switch key {
	case "orderedBy", "createdBy", "appliedBy", "chosenBy", "by", "originator", "user", "users", "administrators":
		return "person"
	case "address", "remoteAddress":
		return "address"
	default:
		return ""
	}
}

// Learn collects the people whom a decoded JSON document identifies.
func (r *Redactor) Learn(value any) { r.learn("", value) }

func (r *Redactor) learn(key string, value any) {
	switch typed := value.(type) {
	case map[string]any:
		// Sort the keys, so that the same documents always result in the same pseudonyms.
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			r.learn(name, typed[name])
		}
	case []any:
		for _, each := range typed {
			r.learn(key, each)
		}
	case string:
		prefix, name := pseudonyms(key), typed
		if key == "message" || key == "description" {
			prefix, name = "person", namedIn(typed)
		}

		if prefix != "" && name != "" {
			r.pseudonym(prefix, name)
		}
	}
}

// named matches the beginning of a message in which a service names a user: the message about an intervention in a timeline, or the
// description of a paused orchestration.
var named = regexp.MustCompile(`^(?:by|expired by|as \S+ by|retry of \S+ by|retry of \S+, again without .+?, by|orchestration \S+, ordered by|Paused by) (.+?)(?:: |; |$)`)

// namedIn returns the user whom the text of a service names, or an empty string if there is none.
func namedIn(text string) string {
	found := named.FindStringSubmatch(text)
	if found == nil || found[1] == "somebody" || found[1] == "an unauthenticated user" {
		return ""
	}

	return found[1]
}

// pseudonym returns the pseudonym of a person or an address. The same text always gets the same pseudonym.
func (r *Redactor) pseudonym(prefix, text string) string {
	if r.people[text] == "" {
		r.counted[prefix]++
		r.people[text] = prefix + "-" + strconv.Itoa(r.counted[prefix])
		r.names, r.words = nil, nil
	}

	return r.people[text]
}

// Value returns a decoded JSON document without secrets and without names of people.
func (r *Redactor) Value(value any) any { return r.value("", value, false) }

// value masks a value depending on its key. free is true if the value belongs to a field with free content, such as the parameters of
// an order.
func (r *Redactor) value(key string, value any, free bool) any {
	switch typed := value.(type) {
	case map[string]any:
		masked := make(map[string]any, len(typed))

		for name, each := range typed {
			switch {
			case secretKey(name) && holdsText(each):
				masked[r.Text(name)] = secret.Mask
			default:
				masked[r.Text(name)] = r.value(name, each, free || freeContent(name))
			}
		}

		return masked
	case []any:
		masked := make([]any, 0, len(typed))
		for _, each := range typed {
			masked = append(masked, r.value(key, each, free))
		}

		return masked
	case string:
		switch prefix := pseudonyms(key); {
		case typed == "":
			return ""
		case prefix != "":
			return r.pseudonym(prefix, typed)
		case free && !harmless(key):
			return secret.Mask
		default:
			return r.Text(typed)
		}
	default:
		return value
	}
}

// holdsText reports whether the value is a string, or a list or object that may contain strings. If the name of a field suggests a
// secret but the value is a number or a boolean, the field is only a setting.
func holdsText(value any) bool {
	switch value.(type) {
	case string, map[string]any, []any:
		return true
	default:
		return false
	}
}

// secretKey reports whether a field with the given name contains a secret.
func secretKey(name string) bool {
	folded := strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))

	return slices.ContainsFunc([]string{
		"password", "passwd", "passphrase", "secret", "token", "kubeconfig", "apikey", "accesskey", "privatekey", "keydata", "certificatedata",
		"credential", "authorization", "cookie", "salt",
	}, func(word string) bool { return strings.Contains(folded, word) })
}

// freeContent reports whether tenants define the content of the field.
func freeContent(name string) bool {
	return slices.Contains([]string{"parameters", "resolved", "before", "after", "labels"}, name)
}

// harmless reports whether the field may be shown although tenants set it, because its values come from a fixed list.
func harmless(name string) bool {
	return slices.Contains([]string{
		"machineType", "region", "zones", "purpose", "version", "kubernetesVersion", "kymaVersion", "profile", "plan", "state", "kind",
		"volumeSizeGb", "autoScalerMin", "autoScalerMax", "role", "maintenanceVersion", "networkFilter", "provider",
	}, name)
}

// secretName is the beginning of patterns for the value of a field whose name suggests a secret. It opens a group.
const secretName = `(?i)([\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|key-data|` +
	`certificate-data|authorization|credential|cookie)[\w.-]*`

// Patterns of secrets in text.
var (
	pemBlock   = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----(?s:.*?)(-----END [A-Z0-9 ]+-----|\z)`)
	jsonToken  = regexp.MustCompile(`\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*`)
	authScheme = regexp.MustCompile(`(?i)\b(bearer|basic) +([\w+/=.~-]{6,})`)
	userInfo   = regexp.MustCompile(`://[^/\s"]*@`)
	// escapedValue, doubleQuoted and singleQuoted match the whole value of a secret in quotation marks. assignment matches other values, which
	// end at a space or a separator.
	escapedValue = regexp.MustCompile(secretName + `(?:\\")?\s*[:=]\s*\\")(?:[^"\\]|\\[^"])+(\\")`)
	doubleQuoted = regexp.MustCompile(secretName + `["']?\s*[:=]\s*")(?:[^"\\]|\\.)+(")`)
	singleQuoted = regexp.MustCompile(secretName + `["']?\s*[:=]\s*')[^']+(')`)
	assignment   = regexp.MustCompile(secretName + `\\?["']?\s*[:=]\s*\\?["']?)([^\s"',;&}\\]+)`)
	keyMaterial  = regexp.MustCompile(`[\w+/-]{40,}={0,2}`)
	mail         = regexp.MustCompile(`[\w.%+-]+@[\w-]+(\.[\w-]+)+`)
)

// Text returns the text without secrets and without names of people.
func (r *Redactor) Text(text string) string {
	text = pemBlock.ReplaceAllString(text, secret.Mask)

	for _, known := range r.known {
		text = strings.ReplaceAll(text, known, secret.Mask)
	}

	text = jsonToken.ReplaceAllString(text, secret.Mask)
	text = userInfo.ReplaceAllString(text, "://"+secret.Mask+"@")
	text = authScheme.ReplaceAllStringFunc(text, func(found string) string {
		scheme, credentials, _ := strings.Cut(found, " ")
		if strings.EqualFold(scheme, "basic") && !strings.ContainsAny(credentials, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=") {
			return found // a word, as in "basic authentication"
		}

		return scheme + " " + secret.Mask
	})

	for _, quoted := range []*regexp.Regexp{escapedValue, doubleQuoted, singleQuoted} {
		text = quoted.ReplaceAllString(text, "${1}"+secret.Mask+"${2}")
	}

	text = assignment.ReplaceAllString(text, "${1}"+secret.Mask)
	text = keyMaterial.ReplaceAllStringFunc(text, func(found string) string {
		if mixed(found) {
			return secret.Mask
		}

		return found
	})
	text = mail.ReplaceAllStringFunc(text, func(found string) string { return r.pseudonym("person", found) })

	return r.anonymous(text)
}

// mixed reports whether the text contains digits, lower-case and upper-case letters, like encoded keys and unlike names and
// hexadecimal digests.
func mixed(text string) bool {
	return strings.ContainsAny(text, "0123456789") && strings.ToLower(text) != text && strings.ToUpper(text) != text
}

// anonymous replaces the names of people whom documents identify. If a name is a plain word, anonymous replaces it only after
// "by", as in "canceled by alice", because the word may have another meaning elsewhere.
func (r *Redactor) anonymous(text string) string {
	if r.names == nil {
		var pairs, words []string

		for name := range r.people {
			if regexp.MustCompile(`^[a-z]+$`).MatchString(name) {
				words = append(words, regexp.QuoteMeta(name))
			} else {
				pairs = append(pairs, name)
			}
		}

		// Replace the longest names first, because one name may start with another.
		slices.SortFunc(pairs, func(a, b string) int { return len(b) - len(a) })

		var old []string
		for _, name := range pairs {
			old = append(old, name, r.people[name])
		}

		slices.Sort(words)

		r.names = strings.NewReplacer(old...)
		r.words = regexp.MustCompile(`\bby (` + strings.Join(words, "|") + `)\b`)
	}

	text = r.names.Replace(text)

	return r.words.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimPrefix(found, "by ")
		if name == "" {
			return found
		}

		return "by " + r.people[name]
	})
}
