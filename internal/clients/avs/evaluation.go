package avs

import (
	"cmp"
	"encoding/json"
)

// Lifecycle is the state of an evaluation.
type Lifecycle string

// The states of evaluations. AvS does not send alerts for evaluations in maintenance.
const (
	Active      Lifecycle = "ACTIVE"
	Maintenance Lifecycle = "MAINTENANCE"
	Inactive    Lifecycle = "INACTIVE"
	Retired     Lifecycle = "RETIRED"
	Deleted     Lifecycle = "DELETED"
)

// Known reports whether the state is one of the constants.
func (l Lifecycle) Known() bool {
	switch l {
	case Active, Maintenance, Inactive, Retired, Deleted:
		return true
	default:
		return false
	}
}

// Tag is a tag of an evaluation, in its wire format.
type Tag struct {
	Content   string `json:"content"`
	ClassID   int64  `json:"tag_class_id"`
	ClassName string `json:"tag_class_name,omitempty"`
}

// Evaluation contains the fields of an evaluation that the broker uses, in the wire format. AvS returns all fields of
// Definition, with the threshold as a number.
type Evaluation struct {
	ID     int64     `json:"id"`
	Status Lifecycle `json:"status"`
	Tags   []Tag     `json:"tags"`
}

// has reports whether the evaluation has a tag with the same class and content. Class names are ignored, because AvS adds them.
func (e Evaluation) has(tag Tag) bool {
	for _, own := range e.Tags {
		if own.ClassID == tag.ClassID && own.Content == tag.Content {
			return true
		}
	}

	return false
}

// Definition describes an evaluation to create, in its wire format.
type Definition struct {
	DefinitionType   string `json:"definition_type"`
	Name             string `json:"name"`
	Description      string `json:"description"`
	Service          string `json:"service"`
	URL              string `json:"url"`
	CheckType        string `json:"check_type"`
	Interval         int32  `json:"interval"` // in seconds
	TesterAccessID   int64  `json:"tester_access_id"`
	Timeout          int32  `json:"timeout"` // in milliseconds
	ReadOnly         bool   `json:"read_only"`
	ContentCheck     string `json:"content_check"`
	ContentCheckType string `json:"content_check_type"`
	Threshold        string `json:"threshold"` // in milliseconds
	GroupID          int64  `json:"group_id"`
	Visibility       string `json:"visibility"`
	ParentID         int64  `json:"parent_id"`
	Tags             []Tag  `json:"tags"`
}

// Cluster is a cluster to monitor.
type Cluster struct {
	InstanceID, Name, GlobalAccountID, SubAccountID string
	ShootName                                       string
	// Provider is empty for a cluster that the tenant provides.
	Provider string
	// PlanName is the plan of the instance.
	PlanName string
	// Domain is the domain of the cluster. Only the external evaluation needs it.
	Domain string
}

// maxName and maxDescription are the AvS limits, in characters.
const (
	maxName        = 80
	maxDescription = 255
)

// name returns the name of an evaluation, which helps to find it in AvS. kind is int or ext. The format comes from the Kyma
// Environment Broker.
func (c Cluster) name(kind string) string {
	providers := map[string]string{"aws": "AWS", "azure": "AZR", "gcp": "GCP"}

	return cut("K8S-"+cmp.Or(providers[c.Provider], "CC")+"-Kyma-"+kind+"-"+c.InstanceID+"-"+c.Name, maxName)
}

func (c Cluster) description() string {
	encoded, _ := json.Marshal(struct { //nolint:errchkjson // only strings
		Instance      string `json:"instanceName"`
		GlobalAccount string `json:"globalAccountID"`
		SubAccount    string `json:"subAccountID"`
		ID            string `json:"instanceID"`
		Shoot         string `json:"shootName"`
	}{c.Name, c.GlobalAccountID, c.SubAccountID, c.InstanceID, c.ShootName})

	return cut(string(encoded), maxDescription)
}

// cut shortens the text to at most the given number of characters.
func cut(text string, characters int) string {
	runes := []rune(text)

	return string(runes[:min(len(runes), characters)])
}

// definition returns a definition with the fields that internal and external evaluations share.
func (c *Client) definition(name string, cluster Cluster, tester Tester) Definition {
	tags, _ := parseTags(tester.Tags) // Config.Check rejects invalid tags

	return Definition{
		DefinitionType: "BASIC", Name: name, Description: cluster.description(), Service: tester.Service, Interval: 60,
		TesterAccessID: tester.AccessID, Timeout: 30_000, ContentCheck: "error", ContentCheckType: "NOT_CONTAINS", Threshold: "30000",
		GroupID: c.config.GroupID, Visibility: "PUBLIC", ParentID: c.config.ParentID, Tags: append([]Tag{}, tags...),
	}
}
