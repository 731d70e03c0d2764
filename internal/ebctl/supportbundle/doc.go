// Package supportbundle collects documents into an archive that can be sent to another team: without secrets, with pseudonyms instead of
// the names of people, and with a manifest that lists its files and the missing ones.
package supportbundle
