package environment

// Shown lists what the audit trail tells of an instance. What is not listed is not told: the request as it came may hold credentials.
func (i Instance) Shown() map[string]any {
	cluster := i.Request.Cluster

	return map[string]any{
		"plan":              i.PlanName,
		"name":              i.Name,
		"globalAccountID":   i.GlobalAccountID,
		"subAccountID":      i.SubAccountID,
		"platformRegion":    i.PlatformRegion,
		"provider":          i.Provider,
		"region":            i.Region,
		"shootName":         i.ShootName,
		"kubernetesVersion": cluster.KubernetesVersion,
		"machineType":       cluster.MachineType,
		"volumeType":        cluster.VolumeType,
		"volumeSizeGB":      cluster.VolumeSizeGB,
		"autoScalerMin":     cluster.AutoScalerMin,
		"autoScalerMax":     cluster.AutoScalerMax,
		"maxSurge":          cluster.MaxSurge,
		"maxUnavailable":    cluster.MaxUnavailable,
		"zones":             cluster.Zones,
		"administrators":    cluster.Administrators,
		"oidc":              cluster.OIDC,
		"purpose":           cluster.Purpose,

		"maintenanceVersion": i.MaintenanceVersion,
	}
}

// Shown lists what the audit trail tells of a binding.
func (b Binding) Shown() map[string]any {
	return map[string]any{"role": b.Role, "expiresAt": b.ExpiresAt}
}
