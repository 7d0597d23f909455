package org.example.halcyon;

/**
 * The outcome for one of several submitted jobs; either is null.
 *
 * @param accepted the accepted job
 * @param problem the problem of a job that was refused
 */
public record Submission(AcceptedJob accepted, ProblemException problem) {
    static Submission of(String line) {
        Fields fields = Fields.parse(line);
        ProblemException problem = fields.optional("problem", each -> ProblemException.of(0, each.members(), null));
        return problem == null ? new Submission(AcceptedJob.of(fields), null) : new Submission(null, problem);
    }
}
