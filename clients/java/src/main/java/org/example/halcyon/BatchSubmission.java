package org.example.halcyon;

import java.util.List;

/**
 * The jobs of a batch that a gateway has accepted.
 *
 * @param id the id of the batch
 * @param accepted the number of jobs that were written to the brokers; 0 if a worker lists the jobs
 * @param rejected the number of invalid jobs, which are not part of the batch
 * @param missing the number of failed jobs whose messages no longer exist, of a retry
 * @param problems the problems of the first 100 invalid jobs
 */
public record BatchSubmission(String id, int accepted, int rejected, int missing, List<Rejected> problems) {
    static BatchSubmission of(Fields fields) {
        return new BatchSubmission(
            fields.text("id"), (int) fields.integer("accepted"), (int) fields.integer("rejected"), (int) fields.integer("missing"),
            fields.list("problems", each -> new Rejected(
                (int) each.integer("line"), each.object("problem", problem -> ProblemException.of(0, problem.members(), null)))));
    }

    /**
     * An invalid job.
     *
     * @param line the position of the job or source in the request, from 1
     * @param problem the problem
     */
    public record Rejected(int line, ProblemException problem) {}
}
