package failure

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Platform users never see the error message of another system, because it could contain anything. Explanation replaces it with
// descriptions from this file, for the reasons, codes and fields that it knows.

// Reported returns an error that carries an upstream's error report. Its text consists of failed, which describes the action that
// failed and may be empty, and of the Explanation. Its detail is the report itself.
func Reported(kind Kind, failed, component, reason, reported string) *Error {
	text, known := explanation(component, reason, reported)

	switch {
	case failed != "" && known:
		text = failed + ": " + text
	case failed != "":
		text = failed + seeTimeline
	}

	return (&Error{Kind: kind, Text: text}).WithReason(reason, component).WithDetail(reported)
}

// Explanation returns a clause for users about an error of another system. The component, the reason and known phrases in the
// reported text determine the clause, which quotes none of them.
func Explanation(component, reason, reported string) string {
	text, _ := explanation(component, reason, reported)

	return text
}

// explanation returns the clause for Explanation. known is false if the clause says only that there is an error.
func explanation(component, reason, reported string) (text string, known bool) {
	reported = Shorten(reported, maxScanned)

	if text := codesIn(reason + " " + reported); text != "" {
		return "Gardener reports " + text, true
	}

	if found := phraseIn(reported); found.says != "" {
		return found.says, true
	}

	if text := componentIn(reported); text != "" {
		return text, true
	}

	name := cmp.Or(titles()[component], "another system")
	if text := meaningOf(name, reason, reported); text != "" {
		return text, true
	}

	return name + " reports an error" + seeTimeline, false
}

// meaningOf returns a clause that explains a reason, or an empty string for an unknown reason. name is the name of the system
// that reported the reason.
func meaningOf(name, reason, reported string) string {
	switch reason {
	case kubernetesInvalid, kubernetesForbidden, kubernetesBadRequest,
		kubernetesRequestEntityTooLarge, reasonBadRequest:
		return name + " rejects " + cmp.Or(fieldsIn(reported), "the order") + seeTimeline
	case kubernetesAlreadyExists, ReasonAlreadyExists:
		return name + " already has a cluster with this name" + seeTimeline
	case kubernetesNotFound, ReasonNotFound, ReasonClusterNotFound:
		return name + " has no such object" + seeTimeline
	case kubernetesConflict, ReasonConflict:
		return "the cluster was changed at the same time, or is being deleted" + seeTimeline
	case kubernetesUnauthorized:
		return name + " rejects the credentials of the service: an operator must renew them"
	case kubernetesTimeout, ReasonTimeout:
		return name + " did not finish in time" + seeTimeline
	case kubernetesTooManyRequests, ReasonBusy:
		return name + " is receiving too many requests"
	case kubernetesServiceUnavailable, ReasonSystemUnavailable, ReasonHTTPStatus:
		return name + " does not respond correctly" + seeTimeline
	case ReasonClusterUnreachable:
		return "the cluster is not reachable" + seeTimeline
	case reasonCanceled:
		return "the operation was canceled in the Provisioner"
	default:
		return ""
	}
}

const (
	// maxScanned is the maximum number of characters of a reported text that are searched for known phrases.
	maxScanned = 10_000
	// seeTimeline is the end of an explanation that does not contain the cause.
	seeTimeline = "; operators can find the details in the timeline of the operation"

	// Reasons that only the Provisioner sets.
	reasonBadRequest = "err_provisioner_bad_request"
	reasonCanceled   = "canceled"

	// Reasons of Kubernetes API servers, as in package metav1 of apimachinery.
	kubernetesInvalid               = "Invalid"
	kubernetesForbidden             = "Forbidden"
	kubernetesBadRequest            = "BadRequest"
	kubernetesRequestEntityTooLarge = "RequestEntityTooLarge"
	kubernetesAlreadyExists         = "AlreadyExists"
	kubernetesNotFound              = "NotFound"
	kubernetesConflict              = "Conflict"
	kubernetesUnauthorized          = "Unauthorized"
	kubernetesTimeout               = "Timeout"
	kubernetesTooManyRequests       = "TooManyRequests"
	kubernetesServiceUnavailable    = "ServiceUnavailable"
)

// titles returns the names of the components for users.
func titles() map[string]string {
	return map[string]string{
		ComponentBroker: "the broker", ComponentBrokerDatabase: "the broker's database",
		ComponentProvisioner: "the Provisioner", ComponentProvisionerStorage: "the Provisioner's database",
		ComponentGardener: "Gardener", ComponentGardenerClient: "Gardener", ComponentRuntime: "the cluster",
		ComponentDirector: "Director", ComponentDirectorClient: "Director", ComponentDirectorToken: "the token endpoint of Director",
		ComponentReleases: "the release registry", ComponentBundles: "the bundle provisioner",
	}
}

// failedComponent matches a component of Kyma in the errors of our Provisioner.
var failedComponent = regexp.MustCompile(`component (\d{1,3} of \d{1,3}) \(([a-z0-9-]{1,63})\): `)

// componentIn returns a clause about the Kyma component that could not be installed, or "" if the text names none.
func componentIn(reported string) string {
	found := failedComponent.FindStringSubmatchIndex(reported)
	if found == nil {
		return ""
	}

	cause := "it cannot be installed"

	for _, known := range componentCauses() {
		if strings.Contains(reported[found[1]:], known.in) {
			cause = known.says

			break
		}
	}

	return "component " + reported[found[4]:found[5]] + " (" + reported[found[2]:found[3]] + "): " + cause + seeTimeline
}

// componentCause maps a phrase to a clause for users. in is the phrase, which occurs in errors of our Provisioner or of the bundle
// provisioner. says is the clause.
type componentCause struct{ in, says string }

// componentCauses returns the known causes. If a message contains several, the first one counts.
func componentCauses() []componentCause {
	return []componentCause{
		{"exists already and", "one of its objects already exists and was installed by somebody else"},
		{"a changed field is immutable", "one of its objects cannot be changed"},
		{"the API server of the cluster rejects", "the cluster rejects one of its objects"},
		{"has failed", "a Job has failed"},
		{"bundle provisioner", "the bundle provisioner cannot install it"},
		{"does not respond", "the cluster does not respond"},
	}
}

// phrase maps a pattern in errors of Gardener's API server to a clause for users that is more specific than the clause for the
// reason.
type phrase struct {
	in *regexp.Regexp
	// forbidden is the kind of an error that contains this phrase and has HTTP status 403. If it is empty, such an error has the
	// same kind as any other error with this status.
	forbidden Kind
	says      string
}

//nolint:gochecknoglobals // compiled once, because errors can come at a high rate
var phrases = []phrase{
	{
		// Admission plugins send requests of their own. If such a request fails because the server is overloaded, the plugin
		// forbids the original request.
		regexp.MustCompile(`(?is)is forbidden: .*(?:client rate limiter Wait returned an error|the server has received too many requests|` +
			`etcdserver: too many requests|etcdserver: request timed out|context deadline exceeded)`),
		Transient, "Gardener is overloaded and does not process the request at the moment",
	},
	{
		regexp.MustCompile(`(?i)exceeded quota|quota limits exceeded`),
		Quota, "a quota of the Gardener project is exhausted: raise it or remove unused clusters, then retry",
	},
	{
		regexp.MustCompile(`(?i)user "[^"]*" cannot \w+ resource`),
		Transient, "the credentials of the service lack a permission in Gardener: an operator must grant it",
	},
	{
		// While an API server starts, it forbids every request until it has read its authorization rules.
		regexp.MustCompile(`(?i)not yet ready to handle request`), Transient, "Gardener is not ready yet",
	},
	{
		regexp.MustCompile(`(?i)(?:credentials|secret)binding`),
		"", "Gardener rejects the credentials binding: an operator must create it, or correct the broker's APP_TARGET_SECRETS",
	},
	{
		regexp.MustCompile(`kymaConfig\.version: there is no release "`),
		"", "the Provisioner has no Kyma release of the ordered version: choose another version",
	},
	{
		regexp.MustCompile(`APP_KYMA_RELEASES_PATH`),
		"", "the Provisioner has no releases of Kyma: an operator must set its APP_KYMA_RELEASES_PATH",
	},
}

// phraseIn returns the first known phrase that the text contains, or the zero phrase if it contains none.
func phraseIn(reported string) phrase {
	for _, known := range phrases {
		if known.in.MatchString(reported) {
			return known
		}
	}

	return phrase{}
}

// Forbidden returns why Gardener's API server forbids a request (HTTP status 403), as the kind of the error and a clause for
// users. It recognizes the cause by phrases in the reported text: overload, an exhausted quota, a missing permission, or a server
// that is starting. If it recognizes none of them, known is false; this is common, because admission plugins also forbid invalid
// objects, each with its own wording.
func Forbidden(reported string) (kind Kind, text string, known bool) {
	found := phraseIn(Shorten(reported, maxScanned))

	return found.forbidden, found.says, found.forbidden != ""
}

// GardenerCode is an error code in the status of a Shoot. Remedy is a clause that describes how users can fix the cause.
type GardenerCode struct{ Code, Remedy string }

// GardenerCodes returns all codes that Gardener documents.
func GardenerCodes() []GardenerCode {
	return []GardenerCode{
		{"ERR_INFRA_QUOTA_EXCEEDED", "raise the quota of the cloud account or remove unused resources, then retry"},
		{"ERR_INFRA_RESOURCES_DEPLETED", "the provider has no capacity left: choose another machine type or other zones, or retry later"},
		{"ERR_INFRA_UNAUTHENTICATED", "the cloud account does not accept the credentials: renew those that the credentials binding refers to, then retry"},
		{"ERR_INFRA_UNAUTHORIZED", "the credentials lack a permission in the cloud account: grant it, then retry"},
		{"ERR_CONFIGURATION_PROBLEM", "the cluster or its order is misconfigured: correct what the timeline of the operation describes, then retry"},
		{"ERR_PROBLEMATIC_WEBHOOK", "a webhook in the cluster blocks its system components: correct or remove it, then retry"},
		{"ERR_CLEANUP_CLUSTER_RESOURCES", "objects in the cluster cannot be deleted: look for their finalizers"},
		{"ERR_INFRA_DEPENDENCIES", "a resource in the cloud account is still in use: remove what depends on it"},
		{"ERR_RETRYABLE_INFRA_DEPENDENCIES", "a resource in the cloud account is still in use: wait, or remove what depends on it"},
		{"ERR_RETRYABLE_CONFIGURATION_PROBLEM", "the cluster is misconfigured: wait, or correct what the timeline of the operation describes"},
		{"ERR_INFRA_RATE_LIMITS_EXCEEDED", "too many calls to the provider: wait"},
	}
}

// RemedyOf returns the remedy for a Gardener code, or an empty string if the code is unknown.
func RemedyOf(code string) string {
	for _, known := range GardenerCodes() {
		if known.Code == code {
			return known.Remedy
		}
	}

	return ""
}

var codes = regexp.MustCompile(`\bERR_[A-Z_]+\b`)

// codesIn returns a clause with each known Gardener code in the text and its remedy, or an empty string if the text contains
// none.
func codesIn(text string) string {
	var found []string

	for _, code := range codes.FindAllString(text, -1) {
		if remedy := RemedyOf(code); remedy != "" {
			found = append(found, code+": "+remedy)
		}
	}

	slices.Sort(found)

	return strings.Join(slices.Compact(found), "; ")
}

// fields returns the names under which broker users know the fields of Shoots and of orders to the Provisioner. The keys are the
// paths of these fields.
func fields() map[string]string {
	return map[string]string{
		"metadata.name":                      "the name of the cluster",
		"spec.region":                        "the region",
		"spec.purpose":                       "the purpose",
		"spec.networking":                    "the networks",
		"spec.maintenance":                   "the maintenance window",
		"spec.kubernetes":                    "the Kubernetes configuration",
		"spec.cloudProfile":                  "the cloud profile",
		"spec.cloudProfileName":              "the cloud profile",
		"spec.kubernetes.version":            "the Kubernetes version",
		"spec.controlPlane.highAvailability": "the failure tolerance of the control plane",
		"spec.provider.type":                 "the provider",
		"spec.provider.infrastructureConfig": "the network of the provider",
		"spec.provider.workers":              "the worker pool",
		"spec.provider.workers.machine.type": "the machine type", "spec.provider.workers.machine.image": "the machine image",
		"spec.provider.workers.minimum": "the number of nodes", "spec.provider.workers.maximum": "the number of nodes",
		"spec.provider.workers.zones": "the zones", "spec.provider.workers.volume": "the volume",

		"gardenerConfig.name": "the name of the cluster", "gardenerConfig.region": "the region", "gardenerConfig.purpose": "the purpose",
		"gardenerConfig.provider": "the provider", "gardenerConfig.targetSecret": "the credentials binding",
		"gardenerConfig.kubernetesVersion": "the Kubernetes version", "gardenerConfig.machineType": "the machine type",
		"gardenerConfig.machineImage": "the machine image", "gardenerConfig.machineImageVersion": "the machine image",
		"gardenerConfig.autoScalerMin": "the number of nodes", "gardenerConfig.autoScalerMax": "the number of nodes",
		"gardenerConfig.volumeSizeGB": "the volume", "gardenerConfig.diskType": "the volume",
		"gardenerConfig.oidcConfig": "the OIDC configuration", "gardenerConfig.dnsConfig": "the DNS configuration",
		"gardenerConfig.providerSpecificConfig":       "the zones or the network of the provider",
		"gardenerConfig.controlPlaneFailureTolerance": "the failure tolerance of the control plane",
		"gardenerConfig.workerCidr":                   "the networks", "gardenerConfig.podsCidr": "the networks", "gardenerConfig.servicesCidr": "the networks",
	}
}

// paths matches a field path. positions matches an index or a key in such a path.
var (
	paths     = regexp.MustCompile(`\b(?:spec|metadata|gardenerConfig)(?:\.[A-Za-z]+(?:\[[^\]]{0,100}\])?)+`)
	positions = regexp.MustCompile(`\[[^\]]*\]`)
)

// fieldsIn finds field paths in the text and returns the names under which users know these fields, without duplicates. If a field
// has no such name, fieldsIn uses the name of the closest enclosing field that has one. If the text contains no known path, it
// returns an empty string.
func fieldsIn(text string) string {
	var found []string

	known := fields()

	for _, path := range paths.FindAllString(text, -1) {
		for path = positions.ReplaceAllString(path, ""); path != ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
			if words, ok := known[path]; ok {
				found = append(found, words)

				break
			}
		}
	}

	slices.Sort(found)

	return strings.Join(slices.Compact(found), ", ")
}
