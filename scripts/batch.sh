#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Job scripts for batch systems, all from the one table below, so that their requests stay equal.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/batch.sh SYSTEM KIND [--nodes N] [--gpus N] [--cores N] [--memory N] [--image IMAGE] [--beside]

Prints a job script. SYSTEM: slurm, pbs, lsf, flux, kubernetes (an MPIJob of the MPI operator). KIND: acceptance, nightly, soak.
All of them start KIND.sh, where the work is: in the folder of batch.sh, or in ASSAY_SCRIPTS where the job has that variable
(kubernetes: in the image). Settings come from ASSAY_SITE or /etc/assay/site.conf.

The soak is a chain of jobs in Slurm, and elsewhere one job for all of its segments: as many as the settings say now.

The job requests whole nodes. The number of ranks is determined on the node: one per GPU, else one per socket (ASSAY_RANKS).
In PBS and LSF, mpirun of Open MPI gets the hosts of the job, and a host without ranks makes the run INCONCLUSIVE. In Flux,
ASSAY_LAUNCH must be "flux run -N NODES -n RANKS": mpirun would start all ranks on one node.

  --nodes N      nodes to request (default: slurm what sbatch is told, pbs, lsf and flux 1, kubernetes 4)
  --gpus N       GPUs of a node, 0 for none. Required with pbs, lsf and kubernetes, which allocate only the GPUs requested;
                 slurm and flux allocate all GPUs of a node that a job has for itself. Slurm gives them to srun and mpirun
                 only on request: without --gpus the scripts request what scontrol shows as GRES of all nodes
  --cores N      cores of a node. Required with pbs and lsf, which allocate by cores; kubernetes: free cores of a node
                 (default: 8); the others allocate all
  --memory N     kubernetes: free memory of a node in GiB (default: 32)
  --image IMAGE  kubernetes: the container image with assay in it (default: assay:latest)
  --beside       slurm: KIND.sh is in the folder above that of the job script instead, which may then be moved with it

scripts/slurm/*.sbatch are these scripts for Slurm, made with --beside. Only those for Slurm have been run; of the others, the syntax is checked.
TEXT
}

# shellcheck source=scripts/site.sh
. "$(dirname "${BASH_SOURCE[0]}")/site.sh"

wrong() { printf 'batch.sh: %s\n' "$*" >&2; exit 4; }

# kind | minutes | seconds ahead of the limit at which SIGUSR1 comes | what it is
kinds() {
  cat <<'TABLE'
acceptance|150|300|Acceptance of a new cluster: two hours, a report to sign.
nightly|30|180|One night.
soak|45|180|One segment of a soak, which submits the next without the nodes that failed.
TABLE
}

system=${1:-} kind=${2:-} nodes='' gpus='' cores='' memory=32 image=assay:latest beside=''
case "$system" in --help | -h) usage; exit 0 ;; esac
[ "$#" -ge 2 ] || wrong 'usage: batch.sh SYSTEM KIND (try --help)'
shift 2
while [ "$#" -gt 0 ]; do
  if [ "$1" = --beside ] && [ "$system" = slurm ]; then beside=yes; shift; continue; fi
  [ "$#" -ge 2 ] || wrong "$1 needs a value"
  case "$1" in
    --nodes) [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--nodes takes a number, not '$2'"; nodes=$2 ;;
    --gpus) [[ $2 =~ ^[0-9]{1,4}$ ]] || wrong "--gpus takes a number, not '$2'"; gpus=$2 ;;
    --cores) [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || wrong "--cores takes a number, not '$2'"; cores=$2 ;;
    --memory) [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--memory takes a number of GiB, not '$2'"; memory=$2 ;;
    --image) [[ $2 =~ ^[A-Za-z0-9._/:@-]+$ ]] || wrong "--image: '$2' is no image"; image=$2 ;;
    *) wrong "unknown option $1 (try --help)" ;;
  esac
  shift 2
done
row=$(kinds | grep "^$kind|" || true)
[ -n "$row" ] || wrong "KIND is acceptance, nightly or soak, not '$kind'"
case "$system" in
  pbs | lsf | kubernetes) [ -n "$gpus" ] || wrong "$system allocates only the GPUs requested: say --gpus N (0 where nodes have none)" ;;
esac
case "$system" in
  pbs | lsf) [ -n "$cores" ] || wrong "$system allocates only the cores requested: say --cores N, the cores of a node" ;;
esac
IFS='|' read -r _ minutes ahead what <<<"$row"
if [ "$kind" = soak ] && [ "$system" != slurm ]; then
  site_settings
  # Time to start, merge and judge each segment, and for the verdict on all.
  minutes=$((10#$ASSAY_SOAK_SEGMENTS * (10#$ASSAY_SOAK_MINUTES + 5) + 10)) ahead=300 what='A soak: all its segments.'
fi
printf -v clock '%02d:%02d:00' "$((minutes / 60))" "$((minutes % 60))"

header() {  # TESTED
  printf '#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n# %s Made by scripts/batch.sh %s %s%s; change it there.\n' "$what" "$system" "$kind" "${beside:+ --beside}"
  [ "$1" = tested ] || printf '# Untested: no %s has run it.\n' "$system"
}

# A job runs a copy of its script, which cannot know where the others are: it is told, or in Slurm finds where the copy is from.
footer() {
  local scripts
  printf -v scripts %q "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
  # shellcheck disable=SC2016
  if [ -n "$beside" ]; then
    scripts='$(dirname "$(dirname "$(scontrol show job -o "$SLURM_JOB_ID" | sed "s/.* Command=\([^ ]*\).*/\1/")")")'
  fi
  # shellcheck disable=SC2016
  printf 'set -euo pipefail\nscripts=${ASSAY_SCRIPTS:-%s}\nexec "$scripts/%s.sh" "$@"\n' "$scripts" "$kind"
}

case "$system" in
  slurm)
    header tested
    printf '#SBATCH --job-name=assay-%s\n' "$kind"
    [ -z "$nodes" ] || printf '#SBATCH --nodes=%s\n' "$nodes"
    # The loss of a node other than the first ends neither the script nor the ranks of other nodes.
    printf '#SBATCH --no-kill\n'
    # B: the signal goes to the script, which hands it to whatever launcher the site uses.
    # Alone on its nodes, a job gets all their cores and GPUs (its steps: launch_step_gpus), but only as much memory as it asks
    # for: 0 is all.
    [ -z "$gpus" ] || [ "$gpus" = 0 ] || printf '#SBATCH --gres=gpu:%s\n' "$gpus"
    printf '#SBATCH --exclusive\n#SBATCH --mem=0\n#SBATCH --time=%s\n#SBATCH --signal=B:USR1@%s\n' "$clock" "$ahead"
    printf '#SBATCH --no-requeue\n#SBATCH --output=assay-%s-%%j.out\n' "$kind"
    footer ;;
  pbs)
    header untested
    resources=ncpus=$cores:mpiprocs=1
    if [ "$gpus" != 0 ]; then resources=ncpus=$cores:ngpus=$gpus:mpiprocs=$gpus; fi
    printf '#PBS -N assay-%s\n#PBS -l select=%s:%s\n#PBS -l place=scatter:excl\n#PBS -l walltime=%s\n#PBS -r n\n#PBS -j oe\n' "$kind" "${nodes:-1}" "$resources" "$clock"
    # PBS sends no signal ahead of the limit: the job sets its own timer.
    printf '( sleep %s; kill -USR1 $$ ) &\n' "$((minutes * 60 - ahead))"
    footer ;;
  lsf)
    header untested
    # LSF has no number of nodes but for CSM: slots, and how many of a host.
    printf '#BSUB -J assay-%s\n#BSUB -n %s\n#BSUB -R "span[ptile=%s]"\n#BSUB -x\n#BSUB -W %s\n#BSUB -wa USR1 -wt %s\n#BSUB -rn\n#BSUB -o assay-%s-%%J.out\n' \
      "$kind" "$((${nodes:-1} * cores))" "$cores" "$minutes" "$((ahead / 60))" "$kind"
    [ "$gpus" = 0 ] || printf '#BSUB -gpu "num=%s:mode=shared"\n' "$gpus"
    footer ;;
  flux)
    header untested
    printf '#flux: --job-name=assay-%s\n#flux: --nodes=%s\n#flux: --exclusive\n#flux: --time-limit=%sm\n#flux: --signal=SIGUSR1@%ss\n#flux: --output=assay-%s-{{id}}.out\n' \
      "$kind" "${nodes:-1}" "$minutes" "$ahead" "$kind"
    footer ;;
  kubernetes)
    limits=''
    if [ "$gpus" != 0 ]; then limits=$(printf '\n                limits: {nvidia.com/gpu: %s}' "$gpus"); fi
    cat <<YAML
# SPDX-License-Identifier: Apache-2.0
# $what Made by scripts/batch.sh kubernetes $kind; change it there.
# Untested: no cluster has run it. Results lie in the claim "assay-results" (ReadWriteMany: launcher and workers mount it), directory
# assay; settings in the config map "assay-site" (key site.conf). Its other keys, as limits.toml, are files in /etc/assay/options.
# Started with "kubectl create -f", each time as a job of its own name. MPI operator 0.4 or later.
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  generateName: assay-$kind-
spec:
  slotsPerWorker: $((gpus > 0 ? gpus : 1))
  # A worker that still pulls its image answers nobody. The launcher's deadline begins with it.
  launcherCreationPolicy: WaitForWorkersReady
  runPolicy:
    cleanPodPolicy: Running
    activeDeadlineSeconds: $((minutes * 60))
    backoffLimit: 0
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          # Others can write the root of a volume, as a rule, and a directory that is made for a subPath has the mode of the root: the
          # scripts would refuse both.
          initContainers:
            - name: results
              image: $image
              command: ["sh", "-c", "mkdir -p /results/assay && chmod go-w /results/assay"]
              resources: {requests: {cpu: 1, memory: 1Gi}}
              volumeMounts:
                - {name: results, mountPath: /results}
          containers:
            - name: launcher
              image: $image
              # The signal comes ahead of the deadline, as from a batch system: to the script alone.
              command: ["timeout", "--foreground", "--preserve-status", "--signal=USR1", "$((minutes * 60 - ahead))", "/usr/share/assay/scripts/$kind.sh"]
              resources: {requests: {cpu: 1, memory: 1Gi}}
              env:
                - name: ASSAY_SITE
                  value: /etc/assay/site.conf
              volumeMounts:
                - {name: site, mountPath: /etc/assay/site.conf, subPath: site.conf}
                - {name: site, mountPath: /etc/assay/options}
                - {name: results, mountPath: /var/lib/assay, subPath: assay}
          volumes:
            - {name: site, configMap: {name: assay-site}}
            - {name: results, persistentVolumeClaim: {claimName: assay-results}}
    Worker:
      replicas: ${nodes:-4}
      template:
        metadata:
          labels: {app.kubernetes.io/name: assay-worker}
        spec:
          # One worker on a node, of all jobs of assay.
          affinity:
            podAntiAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                - labelSelector: {matchLabels: {app.kubernetes.io/name: assay-worker}}
                  topologyKey: kubernetes.io/hostname
          # Results name a node by its pod, which is another one each time: pods.txt and the summary say on which nodes they were.
          initContainers:
            - name: node
              image: $image
              command: ["sh", "-c", "mkdir -p /var/lib/assay/pods && { find /var/lib/assay/pods -type f -mtime +30 -delete 2>/dev/null; echo \"\$NODE_NAME\" >/var/lib/assay/pods/\"\$HOSTNAME\"; }"]
              resources: {requests: {cpu: 1, memory: 1Gi}}
              env:
                - name: NODE_NAME
                  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
              volumeMounts:
                - {name: results, mountPath: /var/lib/assay, subPath: assay}
          containers:
            - name: worker
              image: $image
              # Memory of RDMA and of GPUs is locked.
              securityContext: {capabilities: {add: [IPC_LOCK]}}
              # What every node of the test has free: without requests it shares a node with anybody's load.
              resources:
                requests: {cpu: ${cores:-8}, memory: ${memory}Gi}$limits
              volumeMounts:
                - {name: shm, mountPath: /dev/shm}
                # Rank 0 runs in a worker: it writes the results and reads the files of options.
                - {name: site, mountPath: /etc/assay/options}
                - {name: results, mountPath: /var/lib/assay, subPath: assay}
          volumes:
            # Ranks of a node exchange data in shared memory, NCCL too; the 64 MiB of a container are too little.
            - {name: shm, emptyDir: {medium: Memory}}
            - {name: site, configMap: {name: assay-site}}
            - {name: results, persistentVolumeClaim: {claimName: assay-results}}
YAML
    ;;
  *) wrong "SYSTEM is slurm, pbs, lsf, flux or kubernetes, not '$system'" ;;
esac
